"""One scripted answer of a loopback service, and how its bytes are sent. Must not know any wire form."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import socket
import struct
import zlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send


@dataclass(frozen=True)
class Answer:
    """What to answer, whatever the wire form. All times in ms."""

    deltas: tuple[str, ...] = ("return ", "a", " +", " b")
    finish_reason: str | None = "stop"  # or "length"; kinds put their own word for "stop", others are sent as they are
    final: str = "normal"  # "none": the stream ends before its final record; kinds may know more
    prompt_tokens: int = 21
    extra: dict[str, Any] = field(default_factory=dict)  # unknown fields of every record
    delay_ms: float = 0.0  # before each delta
    first_delay_ms: float = 0.0  # before the first one besides
    hold_after: int | None = None  # after this many deltas nothing more comes until `release()`
    hold_head: bool = False  # nor does the head of the answer
    reset_after: int | None = None  # after this many deltas RST; in a whole answer after half of it
    stream_error: str | dict[str, Any] | None = None  # in place of the end: a text for `fault`, or a record of the kind
    ping_ms: float = 15_000.0  # a keep-alive whenever nothing was sent for so long
    pings: str = "comment"  # "event": SSE events of that name
    status: int = 200
    detail: Any = None  # the error's text; with status 200 too
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str | None = None  # in place of the kind's; "" for none
    raw: bytes | None = None  # the whole body, with any status, in place of everything
    replace: tuple[tuple[bytes, bytes], ...] = ()  # in what is sent, after rendering: breaks encodings and JSON
    split: int = 0  # bytes per packet; 0: as they come
    gzip: bool = False

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @classmethod
    def of(cls, value: dict[str, Any] | str) -> Answer:
        """From JSON: fields of this class, or the text alone."""
        if isinstance(value, str):
            return cls(deltas=tuple(value[i : i + 4] for i in range(0, len(value), 4)))
        if unknown := value.keys() - {each.name for each in dataclasses.fields(cls)}:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        return cls(**{**value, "deltas": tuple(value.get("deltas", cls.deltas))})


@dataclass
class Seen:
    """One request. Times are seconds of `time.monotonic`, which processes of one machine share on Linux."""

    path: str
    headers: dict[str, str]
    text: str  # the body as it came
    begun: float
    port: int  # of the client: the same as before if the connection is
    query: str = ""
    method: str = "POST"
    answered: float | None = None
    disconnected: float | None = None
    generating: bool = False  # passed all checks

    @property
    def body(self) -> Any:
        return json.loads(self.text)


def line(record: Any) -> bytes:
    """One record as NDJSON."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


class Service(Protocol):
    """What `Reply` wants of a service; `LoopbackService` tells what each is."""

    media_type: str

    def error(self, status: int, detail: Any) -> Any: ...
    def whole(self, answer: Answer, seen: Seen) -> Any: ...
    def begin(self, answer: Answer, seen: Seen) -> bytes: ...
    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes: ...
    def end(self, answer: Answer, seen: Seen) -> bytes: ...
    def fault(self, answer: Answer, seen: Seen) -> bytes: ...
    def ping(self, answer: Answer) -> bytes: ...
    def mark(self, seen: Seen, name: str) -> None: ...
    async def hold(self) -> None: ...


class Reply:
    """Sends one answer, and notes how it ended."""

    def __init__(self, service: Service, seen: Seen, answer: Answer, *, streamed: bool) -> None:
        self._service, self._seen, self._answer = service, seen, answer
        self._failed = answer.status != 200 or answer.detail is not None
        self._streamed = streamed and not self._failed and answer.raw is None
        if not self._failed:
            service.mark(seen, "generating")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writing = asyncio.ensure_future(self._write(scope, send))
        leaving = asyncio.ensure_future(self._left(receive))
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in (writing, leaving):
            task.cancel()
        await asyncio.wait({writing, leaving})
        if writing.cancelled():
            self._service.mark(self._seen, "disconnected")
        else:
            writing.result()

    @staticmethod
    async def _left(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _write(self, scope: Scope, send: Send) -> None:
        if self._answer.hold_head:
            await self._service.hold()
        complete = await (self._write_stream(send) if self._streamed else self._write_whole(send))
        if not complete:
            _abort(scope)
            return
        self._service.mark(self._seen, "answered")
        await send({"type": "http.response.body", "body": b""})

    async def _write_stream(self, send: Send) -> bool:
        """Whether all of it was to be sent; no: RST."""
        answer = self._answer
        await send(self._head(self._service.media_type))
        pack = zlib.compressobj(wbits=31) if answer.gzip else None
        async with aclosing(_alive(self._chunks(), answer.ping_ms, self._service.ping(answer))) as chunks:
            async for chunk in chunks:
                if chunk is None:
                    return False
                changed = self._changed(chunk)
                packed = pack.compress(changed) + pack.flush(zlib.Z_SYNC_FLUSH) if pack else changed
                await self._send(send, packed)
        if pack:
            await self._send(send, pack.flush())
        return True

    async def _write_whole(self, send: Send) -> bool:
        body, media_type = await self._body()
        body = gzip.compress(self._changed(body)) if self._answer.gzip else self._changed(body)
        await send(self._head(media_type, length=len(body)))
        if self._answer.reset_after is not None:
            await send({"type": "http.response.body", "body": body[: len(body) // 2], "more_body": True})
            return False
        await self._send(send, body)
        return True

    async def _body(self) -> tuple[bytes, str]:
        answer = self._answer
        if answer.raw is not None:
            return answer.raw, self._service.media_type
        if not self._failed:
            async for _ in self._texts():
                pass
        content = self._service.error(answer.status, answer.detail) if self._failed else None
        if isinstance(content, str | bytes):
            return content.encode() if isinstance(content, str) else content, "text/plain; charset=utf-8"
        if not self._failed:
            content = self._service.whole(answer, self._seen)
        return line(content)[:-1], "application/json"

    async def _chunks(self) -> AsyncGenerator[bytes | None, None]:
        """The stream's bytes, never empty; None for RST."""
        answer, service, seen = self._answer, self._service, self._seen
        if begin := service.begin(answer, seen):
            yield begin
        normal, number = answer.final != "none" and not answer.stream_error, 0
        async with aclosing(self._texts()) as texts:
            async for text in texts:
                if number == answer.reset_after:
                    yield None
                number += 1
                if part := service.part(answer, seen, text, normal and number == len(answer.deltas)):
                    yield part
        if number == answer.reset_after:
            yield None
        if answer.stream_error:
            yield service.fault(answer, seen)
        elif normal and (end := service.end(answer, seen)):
            yield end

    async def _texts(self) -> AsyncGenerator[str, None]:
        answer = self._answer
        await asyncio.sleep(answer.first_delay_ms / 1000)
        for number, text in enumerate(answer.deltas):
            if number == answer.hold_after:
                await self._service.hold()
            if answer.delay_ms:
                await asyncio.sleep(answer.delay_ms / 1000)
            yield text
        if answer.hold_after == len(answer.deltas):
            await self._service.hold()

    def _head(self, media_type: str, *, length: int | None = None) -> dict[str, Any]:
        answer = self._answer
        if answer.content_type is not None:
            media_type = answer.content_type
        headers = {"content-type": media_type} if media_type else {}
        headers |= {"content-encoding": "gzip"} if answer.gzip else {}
        headers |= {} if length is None else {"content-length": str(length)}
        pairs = [(name.lower().encode(), value.encode()) for name, value in (headers | answer.headers).items()]
        return {"type": "http.response.start", "status": answer.status, "headers": pairs}

    def _changed(self, chunk: bytes) -> bytes:
        for old, new in self._answer.replace:
            chunk = chunk.replace(old, new)
        return chunk

    async def _send(self, send: Send, chunk: bytes) -> None:
        for piece in _pieces(chunk, self._answer.split):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            if self._answer.split:
                await asyncio.sleep(0)  # the client reads in between


def _pieces(chunk: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(chunk), size or len(chunk) or 1):
        yield chunk[start : start + size] if size else chunk


async def _alive(
    chunks: AsyncGenerator[bytes | None, None], ping_ms: float, ping: bytes
) -> AsyncGenerator[bytes | None, None]:
    """The chunks, which are not empty, and a ping whenever none came for so long."""
    asking = asyncio.ensure_future(_next(chunks))
    try:
        while True:
            await asyncio.wait({asking}, timeout=ping_ms / 1000)
            if not asking.done():
                yield ping
                continue
            if asking.result() == b"":
                return
            yield asking.result()
            asking = asyncio.ensure_future(_next(chunks))
    finally:
        asking.cancel()
        await asyncio.wait({asking})
        await chunks.aclose()


async def _next(chunks: AsyncGenerator[bytes | None, None]) -> bytes | None:
    return await anext(chunks, b"")


def _abort(scope: Scope) -> None:
    transport = scope["transport"]
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
