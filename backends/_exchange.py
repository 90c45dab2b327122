"""What httpx keeps to itself about one exchange: whether its connection is new, and how to end it early over HTTP/2.

Must not know what is exchanged.
"""

from __future__ import annotations

from typing import Any

import httpx

_CANCEL = 8  # the error code of HTTP/2 for "no longer wanted" (RFC 9113, section 7)


class Exchange:
    """Follows one request; given to httpx as its `trace` extension.

    httpcore 1.0 forgets a stream of HTTP/2 that is closed early and does not tell the server, which would write its
    answer to the end. So it is told here, before httpcore forgets; over HTTP/1.1 the connection is closed anyway.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.connected = False  # the connection was opened for this request
        self._client = client
        self._request: Any = None  # of httpcore, once it has a stream of HTTP/2

    async def __call__(self, name: str, info: dict[str, Any]) -> None:
        match name:
            case "connection.connect_tcp.started":
                self.connected = True
            case "http2.send_request_headers.started":
                self._request = info["request"]
            case "http2.response_closed.started" if self._request is not None:
                await self._end(info["stream_id"])

    async def _end(self, stream_id: int) -> None:
        import httpcore  # both are there, as HTTP/2 is spoken
        from h2.exceptions import ProtocolError

        carrying = [each for each in self._connections() if stream_id in getattr(each, "_events", ())]
        if len(carrying) != 1:
            return
        (connection,) = carrying
        stream = connection._h2_state.streams.get(stream_id)
        if stream is None or stream.closed:  # it has come to its end
            return
        try:
            connection._h2_state.reset_stream(stream_id, _CANCEL)
            await connection._write_outgoing_data(self._request)
        except (ProtocolError, httpcore.NetworkError):  # the connection is gone
            return

    def _connections(self) -> list[Any]:
        """What httpcore has in the pools of this client: among others, its connections of HTTP/2."""
        transports = [self._client._transport, *filter(None, self._client._mounts.values())]
        pools = [getattr(transport, "_pool", None) for transport in transports]
        return [getattr(each, "_connection", None) for pool in pools if pool for each in pool.connections]
