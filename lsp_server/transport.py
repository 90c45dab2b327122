"""Bytes from and to the client: frames of JSON-RPC messages over descriptors or a socket. Knows nothing of LSP.

Every message is handed over on the event loop, in the order it came in. Nothing but frames is ever written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger(__name__)

_CHUNK = 1 << 16  # bytes read at once
_MAX_HEADER = 1 << 14  # bytes; more without a header cannot become one and are dropped
_MAX_BODY = 1 << 28  # bytes; no editor sends more, and a body that never comes would swallow all that follows
_USUAL = b"Content-Length: "
# Some clients end lines with \n alone. JSON has no line ends within strings, so this is not found inside a body.
_HEADER = re.compile(rb"(?<!-)content-length[ \t]*:[ \t]*(\d+)[ \t]*\r?\n(?:[^\r\n]+\r?\n){0,8}\r?\n", re.IGNORECASE)
# What may stand in a header before that line.
_OTHER_LINES = re.compile(rb"\s*(?:(?!content-length)[!-9;-~]+:[^\r\n]*\r?\n)*", re.IGNORECASE)

# Takes a message and when its last byte was read, seconds of time.perf_counter.
Receive = Callable[[bytes, float], None]


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Frames:
    """Cuts a byte stream into message bodies. Does no IO."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._missing: int | None = None  # length of the body being read; None: in a header
        self._complained = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the bodies that `data` completes."""
        self._buffer += data
        bodies = []
        while (body := self._next()) is not None:
            bodies.append(body)
        return bodies

    def _next(self) -> bytes | None:
        if self._missing is None:
            self._missing = self._usual_header()
        while self._missing is None:
            found = _HEADER.search(self._buffer) if b"\n" in self._buffer else None
            if found is None:
                if len(self._buffer) > _MAX_HEADER:
                    self._skip(len(self._buffer) - _MAX_HEADER // 2)  # the rest may be the start of a header
                return None
            digits = found[1].lstrip(b"0") or b"0"
            if len(digits) > len(str(_MAX_BODY)) or int(digits) > _MAX_BODY:
                self._skip(found.end())
                continue
            if not _OTHER_LINES.fullmatch(self._buffer, 0, found.start()):
                self._skip(0)
            self._missing = int(digits)
            end = found.end()
            del found  # it holds on to the buffer
            del self._buffer[:end]
        if len(self._buffer) < self._missing:
            return None
        body = bytes(self._buffer[: self._missing])
        del self._buffer[: self._missing]
        self._missing = None
        return body

    def _usual_header(self) -> int | None:
        """Take the header nearly every client sends. All others, and whatever is odd, cost a look by pattern."""
        if not self._buffer.startswith(_USUAL):
            return None
        end = self._buffer.find(b"\r\n\r\n", len(_USUAL), len(_USUAL) + len(str(_MAX_BODY)) + 3)
        digits = self._buffer[len(_USUAL) : end] if end > 0 else b""
        if not digits.isdigit():
            return None
        del self._buffer[: end + 4]
        return int(digits)

    def _skip(self, size: int) -> None:
        """Drop what is no frame; tell so once."""
        if not self._complained:
            self._complained = True
            logger.warning("the client sent something between messages; it is skipped up to the next Content-Length")
        del self._buffer[:size]


class Writer(Protocol):
    def write(self, data: bytes) -> None:
        """Write all of `data`. Never raises: a lost client shows as the end of its input."""


class DescriptorWriter:
    """Writes whole frames to a descriptor, from any thread, one after the other."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._lost = False

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        with self._lock:
            while view and not self._lost:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:  # the client made our end non-blocking
                    select.select([], [self._descriptor], [])
                except OSError as error:
                    self._lost = True
                    logger.info("the client no longer reads: %s", error)


class SocketWriter:
    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        if not self._stream.is_closing():
            self._stream.write(data)


def read_descriptor(descriptor: int, receive: Receive, ended: Callable[[], None]) -> None:
    """Read frames; `receive` and `ended` are called on the running loop.

    On the loop itself where it can wait for this kind of stdin, which saves each message the way between two threads.
    """
    loop = asyncio.get_running_loop()
    frames = Frames()

    def ready() -> None:
        data = b""
        try:
            data = os.read(descriptor, _CHUNK)
            moment = time.perf_counter()
            for body in frames.feed(data):
                receive(body, moment)
        except BlockingIOError:
            return
        except OSError as error:
            _log_lost(error)
        except Exception:  # a server that does not read must end, whatever it was
            logger.exception("bug while reading")
            data = b""
        if not data:
            loop.remove_reader(descriptor)
            ended()

    try:
        loop.add_reader(descriptor, ready)
    except (NotImplementedError, OSError):  # Windows; a regular file
        _read_in_thread(descriptor, receive, ended)


def _read_in_thread(descriptor: int, receive: Receive, ended: Callable[[], None]) -> None:
    """In a daemon thread, past any buffered reader: a read that never returns does not keep the process alive."""
    loop = asyncio.get_running_loop()

    def deliver(bodies: list[bytes], moment: float) -> None:
        for body in bodies:
            receive(body, moment)

    def read() -> None:
        frames = Frames()
        while data := os.read(descriptor, _CHUNK):
            moment = time.perf_counter()
            if bodies := frames.feed(data):
                loop.call_soon_threadsafe(deliver, bodies, moment)

    def run() -> None:
        try:
            read()
        except OSError as error:
            _log_lost(error)
        except Exception:  # a server that does not read must end, whatever it was; or the loop was closed meanwhile
            if not loop.is_closed():
                logger.exception("bug while reading")
        finally:
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(ended)

    threading.Thread(target=run, name="midfill-stdin", daemon=True).start()


def _log_lost(error: OSError) -> None:
    logger.info("the client's messages cannot be read any more: %s", error)


async def read_socket(stream: asyncio.StreamReader, receive: Receive) -> None:
    """Read frames until the client disconnects."""
    frames = Frames()
    with contextlib.suppress(ConnectionError):
        while data := await stream.read(_CHUNK):
            moment = time.perf_counter()
            for body in frames.feed(data):
                receive(body, moment)
