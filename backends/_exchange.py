"""What httpx keeps to itself: how far an exchange has come, how to end one of HTTP/2 early, what was left behind.

Must not know what is exchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from backends.base import BackendError

_CANCEL = 8  # the error code of HTTP/2 for "no longer wanted" (RFC 9113, section 7)
_SENDING_S = 2.0  # how long a request that nobody wants may go on; a handshake is of use to the next one


@contextmanager
def told_by_httpx() -> Iterator[None]:
    """Around calls of httpx: what httpcore lets through of h2, anyio and its own is told as a RemoteProtocolError."""
    try:
        yield
    except httpx.LocalProtocolError as error:
        said = error.__cause__.args[:1] if error.__cause__ else ()
        if any(type(what).__module__.startswith("h2.") for what in said):  # mostly of what the other side sent
            raise httpx.RemoteProtocolError(type(said[0]).__name__) from error
        raise
    except (httpx.HTTPError, httpx.StreamError, httpx.InvalidURL, httpx.CookieConflict, OSError, ExceptionGroup):
        raise
    except BackendError:  # what one reads may be what another has read
        raise
    except Exception as error:
        raise httpx.RemoteProtocolError(type(error).__name__) from error


class Exchange:
    """Follows one request; given to httpx as its `trace` extension.

    httpcore 1.0 forgets a stream of HTTP/2 that is closed early and does not tell the server, which would write its
    answer to the end. So it is told here, before httpcore forgets; over HTTP/1.1 the connection is closed anyway.

    Nor does it bear to be cancelled while it sets up a connection or writes: what many requests share would be left
    half done. So an exchange that is abandoned then ends by itself, at the next point where that does no harm.
    """

    def __init__(self, client: httpx.AsyncClient, *, shared: bool) -> None:
        """`shared`: its connection may serve others at the same time."""
        self.connected = False  # the connection was opened for this request
        self._client = client
        self._sending = shared  # not to be cancelled; of those that wait for one connection, none may be
        self._abandoned = False
        self._request: Any = None  # of httpcore, once it has a stream of HTTP/2

    async def __call__(self, name: str, info: dict[str, Any]) -> None:
        match name:
            case "connection.connect_tcp.started":
                self.connected = True
            case "connection.connect_tcp.complete":
                self._sending = True
            case "http11.send_request_headers.started" | "http2.send_request_headers.started":
                self._sending = True
                self._request = info["request"] if name.startswith("http2") else None
                self._leave()
            case "http11.receive_response_headers.started" | "http2.receive_response_headers.started":
                self._sending = False
                self._leave()
            case "http2.response_closed.started" if self._request is not None:
                await self._end(info["stream_id"])

    def abandon(self, task: asyncio.Task[Any]) -> None:
        """Nobody wants the answer any more; `task` is what sends the request."""
        self._abandoned = True
        if self._sending:
            timer = asyncio.get_running_loop().call_later(_SENDING_S, task.cancel)
            task.add_done_callback(lambda _: timer.cancel())
        else:
            task.cancel()

    def _leave(self) -> None:
        if self._abandoned:
            raise asyncio.CancelledError

    async def close(self) -> None:
        """Close what httpcore left behind, of this exchange and of others that have ended."""
        for pool in self._pools():
            for request in self._mine(pool):
                pool._requests.remove(request)
            # A new connection whose request was cancelled just then is nobody's, and would stay in use for ever.
            in_use = {id(request.connection) for request in pool._requests}
            left = [each for each in pool.connections if not (id(each) in in_use or each.is_idle() or each.is_closed())]
            for each in left:
                pool._connections.remove(each)
            if left:
                left += pool._assign_requests_to_connections()  # others may wait for their room
            for each in left:
                await each.aclose()

    async def _end(self, stream_id: int) -> None:
        # Other connections have streams of the same number.
        mine = [request.connection for pool in self._pools() for request in self._mine(pool)]
        connection: Any = getattr(mine[0], "_connection", None) if mine else None
        stream = connection._h2_state.streams.get(stream_id) if hasattr(connection, "_h2_state") else None
        if stream is None or stream.closed:  # it has come to its end
            return
        with suppress(Exception):  # the connection is gone, which h2, httpcore and anyio tell in ways of their own
            connection._h2_state.reset_stream(stream_id, _CANCEL)
            await connection._write_outgoing_data(self._request)

    def _mine(self, pool: Any) -> list[Any]:
        return [each for each in pool._requests if each.request.extensions.get("trace") is self]

    def _pools(self) -> list[Any]:
        transports = [self._client._transport, *filter(None, self._client._mounts.values())]
        return [pool for transport in transports if (pool := getattr(transport, "_pool", None)) is not None]
