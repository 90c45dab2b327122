"""Exact bytes over a real socket: broken framing, split characters, resets. Knows no protocol above HTTP."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class RawServer:
    """Answers each connection's first request with `answer`, `split` bytes per write (0: all at once), then ends it.

    `ending`: "close" sends FIN, "reset" sends RST, "hold" leaves the connection open until the client goes.
    """

    answer: bytes
    split: int = 0
    ending: str = "close"
    requests: list[bytes] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # the client closed a held connection
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._exchange(reader, writer)
        except ConnectionError:
            self.gone.set()
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (
                int(line.partition(b":")[2])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ),
            0,
        )
        self.requests.append(head + await reader.readexactly(length))
        self.begun.set()
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        step = self.split or len(self.answer) or 1
        for start in range(0, len(self.answer), step):
            writer.write(self.answer[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)  # the client reads in between
        if self.ending == "hold":
            await reader.read()
            self.gone.set()
        elif self.ending == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@asynccontextmanager
async def raw_server(answer: bytes, *, split: int = 0, ending: str = "close") -> AsyncIterator[RawServer]:
    raw = RawServer(answer, split, ending)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()
        await server.wait_closed()


def http(
    body: bytes,
    *,
    status: str = "200 OK",
    content_type: str = "text/event-stream",
    headers: str = "",
    length: bool = False,
) -> bytes:
    """A response; without `length` its body ends where the connection does."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n{headers}"
    if length:
        head += f"content-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


def events(*records: str, line_end: str = "\r\n", blank_at_end: bool = True) -> bytes:
    """Server-sent events, one `data:` line for each line of a record."""
    text = "".join("".join(f"data: {line}{line_end}" for line in record.split("\n")) + line_end for record in records)
    return (text if blank_at_end else text[: -len(line_end)]).encode()
