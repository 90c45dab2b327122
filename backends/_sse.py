"""From an HTTP response to text or JSON records, however much it holds. Must not know what the records mean."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx
from httpx_sse import EventSource

from backends._exchange import told_by_httpx
from backends.base import BackendError, ErrorKind

MOST_BYTES = 32 << 20  # of one answer, unpacked: thousands of tokens with hundreds of bytes of JSON around each
PIECE_BYTES = 16 << 10

EVENTS = frozenset({"", "message", "error"})  # others, such as `ping`, carry what is not JSON


DONE: dict[str, Any] = {}  # told by identity: the service has said all; more may not follow
LINES = frozenset({"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"})


def streams(response: httpx.Response) -> bool:
    """Whether the body is a stream of records, not one."""
    return media_type(response) == "text/event-stream" or media_type(response) in LINES


def records_of(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a stream of either framing, see below."""
    return json_lines(response) if media_type(response) in LINES else json_records(response)


def media_type(response: httpx.Response) -> str:
    """The content type without its parameters, in lower case; empty if there is none."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def decode_object(text: str) -> dict[str, Any]:
    """One JSON object; raw control characters in strings are let through. Raises BackendError(PROTOCOL)."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        raise BackendError(ErrorKind.PROTOCOL, "The service sent a record that is not JSON.") from None
    if not isinstance(value, dict):
        raise BackendError(ErrorKind.PROTOCOL, f"The service sent JSON that is no object but {type(value).__name__}.")
    return value


async def parts_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body, unpacked, in pieces that are soon worked through: one packet may unpack to a thousand times its size.

    Others get their turn between them. Raises BackendError(PROTOCOL) beyond `MOST_BYTES`, and httpx's own errors.
    """
    size, parts = 0, response.aiter_bytes()
    while True:
        with told_by_httpx():
            part = await anext(parts, None)
        if part is None:
            return
        size += len(part)
        if size > MOST_BYTES:
            raise BackendError(ErrorKind.PROTOCOL, f"The service's answer is larger than {MOST_BYTES >> 20} MiB.")
        for start in range(0, len(part), PIECE_BYTES):
            if start:
                await asyncio.sleep(0)
            yield part[start : start + PIECE_BYTES]


def events_of(response: httpx.Response) -> httpx.Response:
    """The body as an event stream: UTF-8 whatever the header says, a BOM is dropped."""
    events = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=parts_of(response))
    events.encoding = "utf-8-sig"
    return events


def json_records(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON object of each event, for `[DONE]` the object `DONE`; pings, comments and empty events are not.

    An event counts only once its blank line has come. Raises BackendError(PROTOCOL) and httpx's own errors. Consumers
    must use `contextlib.aclosing`.
    """
    return records_in(events_of(response))


async def records_in(events: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """As `json_records`, of what `events_of` gave."""
    async with aclosing(EventSource(events).aiter_sse()) as found:
        async for event in found:
            if event.event not in EVENTS or not event.data:
                continue
            yield DONE if event.data.strip() == "[DONE]" else decode_object(event.data)


async def json_lines(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON object of each line (NDJSON). Lines end at `\\n` only; a last one without is a record, too.

    Raises BackendError(PROTOCOL) and httpx's own errors. Consumers must use `contextlib.aclosing`.
    """
    lines = Lines()
    async for part in parts_of(response):
        for line in lines.feed(part):
            if line.strip():
                yield decode_object(line.decode("utf-8", "replace"))
    if lines.rest.strip():
        yield decode_object(lines.rest.decode("utf-8", "replace"))


class Lines:
    """Cuts bytes that come in parts at `\\n`. A line of megabytes is put together once, not at each part."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, part: bytes) -> list[bytes]:
        """The lines that have come to their end, without it."""
        first, *others = part.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        ended = [self.rest, *others[:-1]]
        self._begun = [others[-1]]
        return ended

    @property
    def rest(self) -> bytes:
        """The line that has not ended."""
        return b"".join(self._begun)


async def read_text(response: httpx.Response, limit: int | None = None) -> str:
    """The body as UTF-8, at most `limit` bytes of it. Raises BackendError(PROTOCOL) and httpx's errors."""
    parts, size = [], 0
    async with aclosing(parts_of(response)) as pieces:
        async for part in pieces:
            parts.append(part)
            size += len(part)
            if limit is not None and size >= limit:
                break
    return b"".join(parts)[:limit].decode("utf-8-sig", "replace")
