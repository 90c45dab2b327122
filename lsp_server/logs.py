"""Where the log goes and what may stand in it: never stdout, never keys, source text only at DEBUG.

Whoever logs never waits: an editor may not read our stderr, and a full pipe would stop the event loop.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import threading
from collections import deque
from pathlib import Path

from backends.plain import plain

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LONGEST = 200  # characters of a text argument that are logged by libraries
# These log what they send and receive, or who they talk to.
_LOUD = ("pygls.protocol.json_rpc", "pygls.protocol", "pygls.feature_manager", "httpx", "httpcore", "asyncio")
_BODIES = ("pygls",)  # these put whole messages into warnings and errors as well
_MOST_WAITING = 1 << 20  # bytes of lines not yet written; lines that do not fit are counted and dropped
_FLUSH_S = 0.5  # the end of the process waits this long for the last lines


class _WithoutBodies(logging.Filter):
    """Replaces message objects and long texts in the arguments of records of libraries by what they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.split(".", 1)[0] in _BODIES and isinstance(record.args, tuple):
            record.args = tuple(_short(argument) for argument in record.args)
        return True


def _short(argument: object) -> object:
    if argument is None or isinstance(argument, int | float):
        return argument
    if isinstance(argument, str) and len(argument) <= _LONGEST:
        return argument
    size = f" of {len(argument)} characters" if isinstance(argument, str) else ""
    return f"<{type(argument).__name__}{size}>"


class DescriptorHandler(logging.Handler):
    """Writes lines to a descriptor in a daemon thread, which alone waits when nobody reads.

    Past `sys.stderr`: its lock, held by a thread that waits, would keep the interpreter from ending.
    """

    def __init__(self, descriptor: int, *, most_waiting: int = _MOST_WAITING) -> None:
        """`most_waiting`: bytes."""
        super().__init__()
        self._descriptor = descriptor
        self._most_waiting = most_waiting
        self._waiting: deque[bytes] = deque()
        self._size = 0  # bytes in `_waiting` and in the line being written
        self._dropped = 0
        self._ending = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="midfill-log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = (plain(self.format(record)) + "\n").encode()
        except Exception:  # noqa: BLE001 - arguments that do not fit the format, or whose text cannot be had
            self.handleError(record)
            return
        with self._changed:
            if self._size + len(line) > self._most_waiting:
                self._dropped += 1
                return
            self._waiting.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait a little until everything was written."""
        with self._changed:
            self._changed.wait_for(lambda: not self._size, _FLUSH_S)

    def close(self) -> None:
        """Write what is left, if that is soon done."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(_FLUSH_S)
        super().close()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ending)
                if not self._waiting:
                    return
                line = self._waiting.popleft()
            possible = _write(self._descriptor, line)
            with self._changed:
                self._size -= len(line)
                if not possible:  # closed: so it is for all that follows
                    self._waiting.clear()
                    self._size = self._most_waiting = 0
                elif self._dropped and not self._waiting:
                    note = b"%d lines of the log were dropped here: nobody read them\n" % self._dropped
                    self._waiting.append(note)
                    self._size += len(note)
                    self._dropped = 0
                self._changed.notify_all()


class _FileHandler(DescriptorHandler):
    def __init__(self, file: Path) -> None:
        """Raises OSError."""
        self._file = file.open("ab", buffering=0)
        super().__init__(self._file.fileno())

    def close(self) -> None:
        super().close()
        if not self._thread.is_alive():
            self._file.close()


def _write(descriptor: int, data: bytes) -> bool:
    """Write all of `data`. False if that is not possible any more."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # whoever gave us the descriptor made it non-blocking
            with contextlib.suppress(OSError, ValueError):
                select.select([], [descriptor], [])
        except OSError:
            return False
    return True


def _stderr() -> logging.Handler:
    if sys.stderr is None:  # closed from the start: its number may be another file's by now
        return logging.NullHandler()
    try:
        return DescriptorHandler(sys.stderr.fileno())
    except (OSError, ValueError):  # replaced by something that is no file
        return logging.StreamHandler()


def setup(log_file: Path | None = None, *, verbose: bool = False) -> None:
    """Log to `log_file` (appended, UTF-8) or stderr, at INFO, or DEBUG if `verbose`. Raises OSError."""
    handler = _FileHandler(log_file) if log_file else _stderr()
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.addFilter(_WithoutBodies())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.raiseExceptions = False  # a full disk or a closed stderr must not write tracebacks in between
