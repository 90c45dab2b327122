"""HTTP/2 over TLS on loopback, frame by frame: what a client asks, and whether it takes a request back."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset

from tests.services.listening import listening

HERE = Path(__file__).parent
CA, CERTIFICATE, CLIENT = HERE / "localhost-ca.pem", HERE / "localhost.pem", HERE / "client.pem"


def server_context(*, alpn: tuple[str, ...] = (), client: Path | None = None) -> ssl.SSLContext:
    """TLS of the loopback services. `client`: only who shows this certificate gets in."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    if client is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client)
    return context


@dataclass
class H2Service:
    """Answers each request with `body` as an event stream; those beyond `answered` are held.

    `held`: "head" sends nothing, "body" sends `body` and goes on for ever.
    """

    body: bytes
    answered: int = 1000
    held: str = "head"
    requests: list[bytes] = field(default_factory=list)  # bodies
    connections: int = 0
    reset: list[int] = field(default_factory=list)  # error codes with which the client took requests back
    came: asyncio.Event = field(default_factory=asyncio.Event)  # a request is held
    taken_back: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/api"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = H2Connection(H2Configuration(client_side=False))
        connection.initiate_connection()
        bodies: dict[int, bytes] = {}
        writer.write(connection.data_to_send())
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                match event:
                    case RequestReceived():
                        bodies[event.stream_id] = b""
                    case DataReceived():
                        bodies[event.stream_id] += event.data
                        connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    case StreamEnded():
                        self._answer(connection, event.stream_id, bodies.pop(event.stream_id))
                    case StreamReset():
                        self.reset.append(int(event.error_code))
                        self.taken_back.set()
            writer.write(connection.data_to_send())

    def _answer(self, connection: H2Connection, stream: int, body: bytes) -> None:
        self.requests.append(body)
        held = len(self.requests) > self.answered
        if not held or self.held == "body":
            connection.send_headers(stream, [(":status", "200"), ("content-type", "text/event-stream")])
            connection.send_data(stream, self.body, end_stream=not held)
        if held:
            self.came.set()


@asynccontextmanager
async def h2_service(body: bytes, **fields: object) -> AsyncIterator[H2Service]:
    service = H2Service(body, **fields)  # type: ignore[arg-type]
    async with listening(service.serve, server_context(alpn=("h2",))) as service.port:
        yield service
