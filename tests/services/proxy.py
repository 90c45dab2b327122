"""A real HTTP proxy on loopback: CONNECT tunnels, forwarded requests, a login if wanted, and a log of what it saw."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.services.listening import listening


@dataclass
class Proxy:
    """`login`: "name:password" that is asked for. Every host is looked for on this machine, at the port asked for."""

    login: str = ""
    lines: list[str] = field(default_factory=list)  # request lines
    heads: list[bytes] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def with_login(self, login: str) -> str:
        return f"http://{login}@127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, rest = head.partition(b"\r\n")
        method, target, version = line.decode().split(" ")
        self.lines.append(f"{method} {target}")
        self.heads.append(head)
        if self.login and b" Basic " + base64.b64encode(self.login.encode()) + b"\r\n" not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n")
            writer.write(b"content-length: 0\r\nconnection: close\r\n\r\n")
            await writer.drain()
            return
        port = int(target.rpartition(":")[2]) if method == "CONNECT" else urlsplit(target).port or 80
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = urlsplit(target).path
            far_writer.write(f"{method} {path} {version}\r\n".encode() + rest)
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(reader, far_writer))
            both.create_task(_pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def proxy_server(login: str = "") -> AsyncIterator[Proxy]:
    proxy = Proxy(login)
    async with listening(proxy.serve) as proxy.port:
        yield proxy
