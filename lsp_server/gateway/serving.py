"""Opens the socket, serves until a signal, closes the backends. Must not know routes."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing
from types import FrameType
from typing import cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from backends.base import Backend, BackendError, ErrorKind, Observer
from backends.keys import Key
from lsp_server.gateway.app import application
from lsp_server.gateway.desk import Desk
from lsp_server.gateway.endpoint import Services
from lsp_server.gateway.keys import KeyCheck
from lsp_server.settings import Settings

HEAD_S = 30.0  # within which the head of a request must have come, from the connection or its first byte, seconds
GRACE_S = 5  # answers being written may end within this time after a signal, seconds
_BACKLOG = 128
_HOPELESS = frozenset({ErrorKind.SETTINGS, ErrorKind.MODEL_NOT_FOUND, ErrorKind.BAD_MODEL})  # until settings change

_log = logging.getLogger(__name__)


def listen(host: str, port: int) -> socket.socket:
    """A socket at the first address of `host`, IPv4 rather than IPv6. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    # asyncio sends at once (TCP_NODELAY) only where the protocol is spelt out; deltas would come 40 ms late.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def reaches_this_machine_alone(listening: socket.socket) -> bool:
    return ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_loopback


async def serve(
    listening: socket.socket,
    backends: Sequence[Backend],
    settings: Settings,
    key: Key | None,
    observer: Observer,
    ready: Callable[[Desk], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once. Raises BackendError if no backend can be used."""
    async with AsyncExitStack() as stack:
        for backend in backends:
            await stack.enter_async_context(aclosing(backend))
        await _prepare(backends)
        desk = Desk(backends, settings, observer)
        services = Services(desk, KeyCheck(key), settings.gateway.max_body_kb * 1024)
        config = uvicorn.Config(
            application(services),
            http=Protocol,
            log_config=None,
            access_log=False,  # it would show queries
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        ready(desk)
        await _Server(config).serve([listening])


async def _prepare(backends: Sequence[Backend]) -> None:
    """Load models and look for keys before the first request does. A service may be down now and up later."""
    failures = await asyncio.gather(*map(_failure, backends))
    for backend, error in zip(backends, failures, strict=True):
        if error is not None:
            _log.warning("backend %s: %s", backend.name, error.message)
    if failures and all(error is not None and error.kind in _HOPELESS for error in failures):
        assert failures[0] is not None
        raise failures[0]


async def _failure(backend: Backend) -> BackendError | None:
    try:
        await backend.prepare()
    except BackendError as error:
        return error
    return None


class Protocol(H11Protocol):
    """HTTP/1.1 by h11, which limits the head of a request to 64 KiB, and in time: uvicorn waits for one for ever."""

    _too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._too_late = self.loop.call_later(HEAD_S, transport.close)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        awaited = self.cycle is None or self.cycle.response_complete
        if not awaited and self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None
        elif awaited and self._too_late is None:  # part of the next head
            self._too_late = self.loop.call_later(HEAD_S, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._too_late is not None:
            self._too_late.cancel()


class _Server(uvicorn.Server):
    """Ends at a signal as at any other end: uvicorn would raise it once more when all is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self.force_exit = self.should_exit  # the second time
            self.should_exit = True

        def from_system(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(stop)

        kept = {number: signal.signal(number, from_system) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in kept.items():
                signal.signal(number, handler)
