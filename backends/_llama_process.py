"""The local model's process as its parent sees it: start, questions, cancel, end. Knows no prompt and no setting.

The child runs `backends.llama_worker`; the lines between the two are described in its `main` module.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from backends._llama_link import Connection, Place, connect
from backends.base import BackendError, ErrorKind

_ROOT = Path(__file__).resolve().parent.parent
# -E and -P: neither PYTHONPATH nor the user's folder may lend modules. Our own folder leads only for this one import:
# left in front it would let other installed packages shadow the standard library.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from backends.llama_worker.main import main; "
    "sys.path.remove(sys.argv[1]); main(*sys.argv[2:])"
)
_LINE_BYTES = 1 << 22  # longest line taken from the child
_ERROR_BYTES = 1 << 12  # of stderr at once, and of its longest line
_TRIES = 3  # connections to a shared worker before one of our own is started
_HELLO_S = 3.0  # seconds a worker may take to say who it is
_CLOSE_S = 1.0  # a child that has not ended by then is killed, seconds


def command() -> list[str]:
    return [sys.executable, "-E", "-P", "-c", _BOOT, str(_ROOT)]


def environment() -> dict[str, str]:
    """Threads of llama.cpp sleep while they wait for each other, unless the user's environment says otherwise.

    By default they spin, and a spinning thread takes the time slice of the one it waits for: with as many other busy
    processes as cores, decoding was ten times slower. Sleeping costs a very small model a third of its speed on an
    idle machine.
    """
    return {
        "OMP_WAIT_POLICY": "PASSIVE",
        **os.environ,
        "GGML_NO_BACKTRACE": "1",  # no debugger is started when llama.cpp asserts
    }


class Question:
    """One request in the child. `next` gives its replies; `drop` must be called when no more are wanted."""

    def __init__(self, process: LlamaProcess, number: int) -> None:
        self._process = process
        self.number = number
        self.replies: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def next(self) -> dict[str, Any]:
        """The next reply. Raises BackendError: what the child reported, or CRASHED."""
        reply = await self.replies.get()
        if reply is None:
            raise self._process.crash()
        if "error" in reply:
            raise BackendError(ErrorKind(reply["error"]), reply["message"])
        return reply

    def drop(self) -> None:
        """Returns at once; the child is told to stop if it has not finished."""
        self._process.drop(self)


class _Pipes:
    """A child of our own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._process = process
        self.pid = process.pid
        self.reader = process.stdout
        self._errors: deque[str] = deque(maxlen=5)  # last lines of stderr; the child writes no source text there
        self._error_reader = asyncio.create_task(self._read_errors())

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    def write(self, line: bytes) -> None:
        stdin = self._process.stdin
        if stdin is not None and not stdin.is_closing():
            stdin.write(line)

    def close(self) -> None:
        """The child leaves when its stdin closes, even in the middle of a computation."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    give_up = kill

    async def ended(self) -> tuple[str, Sequence[str]]:
        code = await self._process.wait()
        await self._error_reader
        return _how(code), self._errors

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        if stderr is not None:
            rest = b""  # not by lines: one without end would fill the pipe, and the child would wait for ever
            while data := await stderr.read(_ERROR_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                rest = rest[-_ERROR_BYTES:]
                self._keep(*lines)
            self._keep(rest)

    def _keep(self, *lines: bytes) -> None:
        self._errors.extend(text for line in lines if (text := line.decode("utf-8", "replace").strip()))


class _Shared:
    """A worker that other servers ask, too."""

    running = True  # nobody tells; its silence does

    def __init__(self, where: Place, connection: Connection, pid: int) -> None:
        self._where = where
        self._writer = connection.writer
        self._process = connection.process
        self.reader = connection.reader
        self.pid = pid
        self._left = False

    def write(self, line: bytes) -> None:
        if not self._writer.is_closing():
            self._writer.write(line)

    def close(self) -> None:
        self._left = True
        self._writer.close()

    def give_up(self) -> None:
        """It does not take what was sent. Others may use it: only the connection ends."""
        self._writer.transport.abort()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGKILL)

    async def ended(self) -> tuple[str, Sequence[str]]:
        how, left = "has ended", self._left  # who leaves does not wait for the end of what others use
        self.close()
        if not left and self._process is not None and self._process.pid == self.pid:
            with contextlib.suppress(subprocess.TimeoutExpired):
                how = _how(await asyncio.to_thread(self._process.wait, _CLOSE_S))
        return how, self._where.last_words()


def _how(code: int) -> str:
    """How a process with this exit code ended."""
    how = f"ended with code {code}"
    if code < 0:
        with contextlib.suppress(ValueError):
            how = f"was ended by {signal.Signals(-code).name}"
    return f"{how}, perhaps because memory ran out" if code == -getattr(signal, "SIGKILL", 9) else how


class LlamaProcess:
    """A worker as one server sees it. It answers one question at a time: ask the next when `idle` is set."""

    def __init__(self, link: _Pipes | _Shared) -> None:
        self._link = link
        self._number = 0
        self._question: Question | None = None
        self.left = False  # it said goodbye, as nobody asked for long: what was asked meanwhile is asked again
        self._end: tuple[str, Sequence[str]] = ("is not running", ())
        self.idle = asyncio.Event()
        self.idle.set()
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, where: Place | None = None, check: Callable[[], None] = lambda: None) -> LlamaProcess:
        """A child of our own, or the worker that is met at `where`.

        `check` is called before a process is started, and may raise. Raises BackendError(CRASHED) if none can be had.
        """
        if where is not None:
            return cls(await _shared_worker(where, check))
        check()
        return cls(await _own_child())

    @property
    def pid(self) -> int:
        return self._link.pid

    @property
    def alive(self) -> bool:
        return not self._reader.done() and self._link.running and not self.left

    def ask(self, operation: str, **fields: Any) -> Question:
        """Send a request. The child must be idle."""
        self._number += 1
        question = Question(self, self._number)
        self._question = question
        self.idle.clear()
        if self.alive:
            self._send({"id": self._number, "op": operation, **fields})
        else:
            self._gone()
        return question

    def drop(self, question: Question) -> None:
        if question is self._question:
            self._question = None
            if not self.idle.is_set():
                self._send({"id": question.number, "op": "cancel"})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._link.write(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        try:
            while line := await self._link.reader.readline():
                self._deliver(json.loads(line))
        except ValueError:  # not what our worker writes, or a line without end
            self.kill()
        except OSError:  # the connection
            pass
        self._end = await self._link.ended()
        self._gone()

    def _deliver(self, reply: dict[str, Any]) -> None:
        question = self._question
        self.left = self.left or "bye" in reply
        if "done" in reply or "error" in reply:
            self.idle.set()
        if question is not None and question.number == reply["id"]:
            question.replies.put_nowait(reply)

    def _gone(self) -> None:
        self.idle.set()
        if self._question is not None:
            self._question.replies.put_nowait(None)

    def crash(self) -> BackendError:
        how, words = self._end
        last = f" Its last line: {words[-1][:200]}" if words else ""
        return BackendError(
            ErrorKind.CRASHED, f"The local model's process {how}. The next request starts it again.{last}"
        )

    def kill(self) -> None:
        self._link.kill()

    async def aclose(self) -> None:
        """Leave the worker; a child of our own ends, and is killed if it does not. Others may use a shared one."""
        self._link.close()
        _, running = await asyncio.wait({self._reader}, timeout=_CLOSE_S)
        if running:
            self._link.give_up()
            await asyncio.wait({self._reader})


async def _own_child() -> _Pipes:
    try:
        process = await asyncio.create_subprocess_exec(
            *command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=_ROOT,
            env=environment(),
            limit=_LINE_BYTES,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError as error:
        raise BackendError(ErrorKind.CRASHED, f"The local model's process cannot be started: {error}") from error
    return _Pipes(process)


async def _shared_worker(where: Place, check: Callable[[], None]) -> _Pipes | _Shared:
    for _ in range(_TRIES):
        connection = await connect(where, command(), environment(), _ROOT, _LINE_BYTES, check)
        if connection is None:
            break
        with contextlib.suppress(OSError, ValueError):
            async with asyncio.timeout(_HELLO_S):
                line = await connection.reader.readline()
            if line:
                return _Shared(where, connection, json.loads(line)["pid"])
        connection.writer.close()  # it was just about to end, or hangs
    check()
    return await _own_child()
