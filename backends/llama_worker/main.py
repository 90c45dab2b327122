"""The worker's loop: JSON lines in, JSON lines out, over stdin and a private copy of stdout or over a socket.

One object a line, UTF-8. In: {"id", "op": "load" | "generate" | "cancel", ...}; a cancel names the request by its id,
and ids grow. Out, with the id of what they belong to: {"progress"}, {"text"}, and last {"done", ...} or
{"error", "message"}. A request with "debug" is told {"evaluated"} after each batch of its prompt, and its tokens.
A child ends when its stdin closes, whatever it is doing; a shared worker some seconds after the last peer has left, and
either after `idle_unload_s` without a request. Knows no prompt and no token.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from backends.llama_worker.errors import WorkerError
from backends.llama_worker.meeting import Meeting, meet
from backends.llama_worker.peers import Flag, Hub, Peer, Request, listen, start
from backends.llama_worker.turns import Turns

if TYPE_CHECKING:  # imported when a model is loaded: they need what the extra `local` installs
    from backends.llama_worker.engine import Engine

PROGRESS_STEP = 0.02
LINGER_S = 5.0  # how long a shared worker waits for another server when the last one has left
NICE = 5  # of 19: a third of the time is left beside a busy process of usual priority
_LOOK_S = 1.0  # how often it looks whether it is wanted


def take_stdout() -> BinaryIO:
    """A private descriptor for the protocol; from now on all that is printed, by C code too, goes to stderr."""
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return protocol


class Worker:
    """One model, whoever asks. It is loaded once: all who share a worker want the same one."""

    def __init__(self, hub: Hub) -> None:
        self._turns = Turns(hub, self._begin, self._flag)
        self._hub = hub
        self._engine: Engine | None = None
        self._unload_s = 0.0  # 0: never

    def run(self, meeting: Meeting | None) -> None:
        """Until nobody wants it any more. A child is ended by its reader."""
        while True:
            self._turns.run_once(_LOOK_S if meeting or self._unload_s else None)
            lonely = meeting is not None and self._hub.lonely() > LINGER_S
            idle = 0 < self._unload_s < time.monotonic() - self._turns.idle_since
            if (lonely or idle) and not self._turns.busy and self._hub.close(if_empty=not idle):
                if meeting is not None:
                    meeting.end()
                return

    def _flag(self) -> Flag | None:
        return None if self._engine is None else self._engine.abort

    def _begin(self, request: Request) -> Iterator[None]:
        try:
            if request.message["op"] == "load":
                self._load(request)
            else:
                yield from self._generate(request)
        except WorkerError as error:
            request.peer.send(request.id, error=error.kind, message=str(error))
        except (KeyError, TypeError, ValueError) as error:  # one peer's request must not end the others'
            traceback.print_exc()  # of numbers and names only
            message = f"the worker could not read the request ({type(error).__name__})"
            request.peer.send(request.id, error="bad-request", message=message)

    def _load(self, request: Request) -> None:
        message = request.message
        self._unload_s = message.get("idle_unload_s", 0.0)
        if self._engine is None:
            self._engine = self._opened(request)
        request.peer.send(request.id, done="loaded", **self._engine.facts)

    def _opened(self, request: Request) -> Engine:
        message, shown = request.message, -1.0

        def progress(fraction: float) -> None:
            nonlocal shown
            if fraction >= shown + PROGRESS_STEP:
                shown = fraction
                request.peer.send(request.id, progress=round(fraction, 2))

        sizes = {name: message[name] for name in ("context_tokens", "threads", "gpu_layers", "kv_type")}
        try:
            from backends.llama_worker.engine import Engine

            return Engine(message["path"], progress, **sizes)
        except ImportError as error:
            from backends.embedded import ENGINE, INSTALL

            raise WorkerError("settings", f"{ENGINE} cannot be used ({error}). {INSTALL}") from error

    def _generate(self, request: Request) -> Iterator[None]:
        if self._engine is None:
            raise WorkerError("bad-model", "no model is loaded")
        for fields in self._engine.answer(request.message):
            if fields:
                request.peer.send(request.id, **fields)
            yield


def main(where: str = "") -> None:
    """For all who meet at the socket `where`; without one for the parent alone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    sys.stdout.flush()
    _step_back()
    hub, meeting = Hub(), None
    if where:
        meeting = meet(Path(where))
        if meeting is None:
            return  # another worker was quicker
        listen(hub, meeting.listener)
    else:
        parent = Peer(os.fdopen(0, "rb", closefd=False), take_stdout())
        hub.join(parent)
        start("parent", lambda: _serve_parent(hub, parent))
    Worker(hub).run(meeting)
    os._exit(0)  # threads wait in the system for those who are still connected


def _step_back() -> None:
    """Editors, language servers and compilers come first: who waits for them notices it more."""
    with contextlib.suppress(ImportError, OSError):
        if sys.platform == "win32":
            import psutil

            psutil.Process().nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        else:
            os.nice(NICE)


def _serve_parent(hub: Hub, parent: Peer) -> None:
    hub.serve(parent)
    os._exit(0)  # the parent is gone; the main thread may be deep in llama.cpp
