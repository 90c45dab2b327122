"""From a streamed HTTP response to JSON records. Must not know what the records mean."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import httpx
from httpx_sse import EventSource

from backends.base import BackendError, ErrorKind

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


async def json_records(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON object of each event, for `[DONE]` the object `DONE`; pings, comments and empty events are not.

    An event counts only once its blank line has come. Raises BackendError(PROTOCOL) and httpx's own errors. Consumers
    must use `contextlib.aclosing`.
    """
    response.encoding = "utf-8-sig"  # event streams are UTF-8 whatever the header says; a BOM is dropped
    async with aclosing(EventSource(response).aiter_sse()) as events:
        async for event in events:
            if event.event not in EVENTS or not event.data:
                continue
            yield DONE if event.data.strip() == "[DONE]" else decode_object(event.data)


async def json_lines(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the JSON object of each line (NDJSON). Lines end at `\\n` only; a last one without is a record, too.

    Raises BackendError(PROTOCOL) and httpx's own errors. Consumers must use `contextlib.aclosing`.
    """
    rest = b""
    async for part in response.aiter_bytes():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.strip():
                yield decode_object(line.decode("utf-8", "replace"))
    if rest.strip():
        yield decode_object(rest.decode("utf-8", "replace"))
