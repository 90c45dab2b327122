"""Who asks the worker: its parent over pipes, or the servers of one user over a local socket. Knows no model.

Each peer's lines are read by a thread of its own, so that a cancel arrives while the model computes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

SEND_S = 5  # seconds; a peer that takes nothing for so long is given up: the others must not wait for it
LONGEST_LINE = 1 << 26  # bytes; longer ones are no request of ours


class Flag(Protocol):
    """What stops a computation at once."""

    def set(self) -> None: ...

    def clear(self) -> None: ...


class Peer:
    """One who asks. `used` are the seconds of computing it has had: who had least comes next."""

    def __init__(self, reader: BinaryIO, writer: BinaryIO) -> None:
        self.used = 0.0
        self.cancelled: float = -1  # this id and all before it
        self.gone = False
        self._reader = reader
        self._writer = writer
        self._lock = threading.Lock()

    def send(self, request: int, **fields: Any) -> None:
        """Never raises: whoever does not listen any more is seen to be gone by its reader."""
        line = json.dumps({"id": request, **fields}).encode() + b"\n"
        with self._lock:
            if not self.gone:
                try:
                    self._writer.write(line)
                    self._writer.flush()
                except OSError:
                    self.gone = True

    def lines(self) -> Any:
        """Messages until the peer leaves or sends what is none."""
        with contextlib.suppress(OSError, ValueError):
            while line := self._reader.readline(LONGEST_LINE):
                message = json.loads(line)
                if not isinstance(message, dict) or type(message.get("id")) is not int:
                    return
                yield message

    def close(self) -> None:
        self.gone = True
        for file in (self._reader, self._writer):
            with contextlib.suppress(OSError):
                file.close()


@dataclass(slots=True)
class Request:
    peer: Peer
    message: Mapping[str, Any]

    @property
    def id(self) -> int:
        number: int = self.message["id"]
        return number

    @property
    def cancelled(self) -> bool:
        return self.id <= self.peer.cancelled


class Hub:
    """All peers and what they ask, in the order it came."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._running: Request | None = None
        self._flag: Flag | None = None
        self._peers: set[Peer] = set()
        self._closed = False
        self._empty_since = time.monotonic()

    def take(self, timeout: float | None) -> Request | None:
        """The next request; None if none came within `timeout` seconds (None: for ever)."""
        try:
            return self._requests.get(timeout=timeout)
        except queue.Empty:
            return None

    def lonely(self) -> float:
        """Seconds since the last peer left; 0 while there are any."""
        with self._lock:
            return 0.0 if self._peers else time.monotonic() - self._empty_since

    def begin(self, request: Request, flag: Flag) -> None:
        """From now on a cancel of `request`, and of no other, sets `flag`; at once if it came before."""
        with self._lock:
            self._running, self._flag = request, flag
            flag.clear()
            if request.cancelled:
                flag.set()

    def end(self) -> None:
        """What is cancelled from now on is not being computed."""
        with self._lock:
            self._running = None

    def join(self, peer: Peer) -> bool:
        """False: too late."""
        with self._lock:
            if not self._closed:
                self._peers.add(peer)
            return not self._closed

    def close(self, *, if_empty: bool) -> bool:
        """Say goodbye to all peers, so that none takes the end for a crash. False: not empty, as it should be."""
        with self._lock:
            if if_empty and self._peers:
                return False
            self._closed = True
            peers = tuple(self._peers)
        for peer in peers:
            peer.send(0, bye=True)
        return True

    def serve(self, peer: Peer) -> None:
        """Read from `peer`, which has joined, until it leaves; then all it asked is cancelled."""
        for message in peer.lines():
            if message.get("op") == "cancel":
                self._cancel(peer, message["id"])
            else:
                self._requests.put(Request(peer, message))
        self._cancel(peer, math.inf)
        peer.close()
        with self._lock:
            self._peers.discard(peer)
            self._empty_since = time.monotonic()
        self._requests.put(None)  # who waits for requests looks whether it is lonely

    def _cancel(self, peer: Peer, request: float) -> None:
        with self._lock:
            peer.cancelled = max(peer.cancelled, request)
            running = self._running
            if running is not None and self._flag is not None and running.peer is peer and running.cancelled:
                self._flag.set()


def listen(hub: Hub, listener: socket.socket) -> None:
    """Take in peers, in a thread of its own, until the listener is closed. Each is told the process id first."""

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with contextlib.suppress(OSError):  # Windows counts in milliseconds; there are no such sockets there
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_S, 0))
                peer = Peer(connection.makefile("rb"), connection.makefile("wb"))
                connection.close()  # the two files keep it
                if not hub.join(peer):
                    peer.close()
                    continue
                peer.send(0, pid=os.getpid())
                start("peer", lambda peer=peer: hub.serve(peer))  # type: ignore[misc]

    start("listener", accept)


def start(name: str, run: Callable[[], None]) -> None:
    """A thread that does not keep the process alive."""
    threading.Thread(target=run, name=name, daemon=True).start()
