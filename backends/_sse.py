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


def is_event_stream(response: httpx.Response) -> bool:
    return media_type(response) == "text/event-stream"


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
    """Yield the JSON object of each event; pings, comments, empty events and `[DONE]` are passed over.

    An event counts only once its blank line has come. Raises BackendError(PROTOCOL) and httpx's own errors. Consumers
    must use `contextlib.aclosing`.
    """
    response.encoding = "utf-8-sig"  # event streams are UTF-8 whatever the header says; a BOM is dropped
    async with aclosing(EventSource(response).aiter_sse()) as events:
        async for event in events:
            if event.event in EVENTS and event.data and event.data != "[DONE]":
                yield decode_object(event.data)
