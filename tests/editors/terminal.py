"""A program on a terminal of its own, driven by keys; what a user would see of it is kept. POSIX only."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.editors.terminal_screen import TerminalScreen

TERM = "xterm-256color"
WAIT_S = float(os.environ.get("TEST_WAIT_S", "60"))  # for anything; never reached by a passing test
_TICK_S = 0.05  # how often a condition is looked at when nothing is drawn
# Makes the terminal the one that the program is controlled by; `/dev/tty` is it then.
_LAUNCH = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


def missing_terminal() -> str:
    """Why there is no terminal to test on; empty if there is one."""
    return "there are no pseudo-terminals here" if sys.platform == "win32" else ""


class Terminal:
    """One program. Its questions to the terminal are answered while something is awaited."""

    def __init__(self, process: subprocess.Popen[bytes], pty: int, width: int, height: int, reports_keys: bool) -> None:
        self.process = process
        self._pty = pty
        self.screen = TerminalScreen(width, height, self.type, reports_keys=reports_keys)
        self.ended = False  # the program has closed its terminal
        self.watched: list[int] = []  # files: what comes there may fulfil a condition, too

    # Doing ------------------------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        """These characters, as the terminal sends them: `\\x1b` is Esc, `\\r` Enter, `\\x7f` Backspace."""
        data = keys.encode()
        while data:
            _, writable, _ = select.select([], [self._pty], [], _TICK_S)
            if writable:
                data = data[os.write(self._pty, data) :]
            self.read(0)

    def alt(self, key: str) -> None:
        """A key with Alt: as xterm reports it if the program has asked for that, with Esc before it otherwise."""
        self.type(f"\x1b[27;3;{ord(key)}~" if self._modified else f"\x1b{key}")

    def control(self, key: str) -> None:
        """A key with Ctrl, `]` or a small letter: as xterm reports it, or as the character that it stands for."""
        self.type(f"\x1b[27;5;{ord(key)}~" if self._modified else chr(ord(key) & 0x1F))

    @property
    def _modified(self) -> bool:
        return self.screen.modified_keys == 2

    # Seeing -----------------------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        return self.screen.lines()

    def text(self, row: int) -> str:
        return self.screen.text(row)

    def coloured(self, colour: str) -> str:
        return self.screen.coloured(colour)

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column in cells, from 0."""
        return self.screen.cursor

    # Waiting ----------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Read what is drawn until the condition holds."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n" + self._framed()
            assert not self.ended or condition(), f"the program ended before: {what}\n" + self._framed()
            self.read(_TICK_S)

    def _framed(self) -> str:
        return "\n".join(f"|{line}" for line in self.lines()) + f"\ncursor {self.cursor}"

    def read(self, wait_s: float) -> None:
        """Take what is drawn now, or the first that is drawn within this time."""
        if self.ended:
            time.sleep(wait_s)
            return
        readable, _, _ = select.select([self._pty, *self.watched], [], [], wait_s)
        while self._pty in readable:
            try:
                data = os.read(self._pty, 1 << 16)
            except OSError as error:
                if error.errno != errno.EIO:  # Linux's way to tell that nobody holds the other end any more
                    raise
                data = b""
            if not data:
                self.ended = True
                return
            self.screen.feed(data)
            readable, _, _ = select.select([self._pty], [], [], 0)

    # The end ----------------------------------------------------------------------------------------------------------

    def wait(self) -> int:
        """The exit code of a program that is about to end."""
        self.until(lambda: self.ended or self.process.poll() is not None, "the end of the program")
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        """End the program and all that it has started."""
        family: list[psutil.Process] = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
            os.killpg(self.process.pid, 9)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        os.close(self._pty)
        for process in family:
            await_end(process)


def await_end(process: psutil.Process) -> None:
    """Of a process that need not be a child of the tests."""
    deadline = time.monotonic() + WAIT_S
    while not gone(process):
        assert time.monotonic() < deadline, f"still there: {process}"
        time.sleep(_TICK_S)


def gone(process: psutil.Process) -> bool:
    """It has ended; for how long it is listed is up to whoever inherits it."""
    try:
        return bool(process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD))
    except psutil.NoSuchProcess:
        return True


@contextlib.contextmanager
def terminal(
    argv: Sequence[str],
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    width: int = 100,
    height: int = 20,
    reports_keys: bool = True,
) -> Iterator[Terminal]:
    """The program in its folder; `environ` is added to the tests' own. `reports_keys`: as xterm does, if asked to."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    env = {**os.environ, "TERM": TERM, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(environ or {})}
    env = {name: value for name, value in env.items() if name not in ("COLORTERM", "LINES", "COLUMNS")}
    launch = [sys.executable, "-I", "-S", "-c", _LAUNCH, *argv]
    process = subprocess.Popen(
        launch, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=folder, start_new_session=True
    )
    os.close(theirs)
    started = Terminal(process, ours, width, height, reports_keys)
    try:
        yield started
    finally:
        started.close()
