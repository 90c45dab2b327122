"""How services word their errors, and what a user is told to do. Must not know how records come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backends._failures import PROXY_LOGIN
from backends._sse import decode_object
from backends.base import BackendError, ErrorKind
from backends.keys import Key

_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|(input|prompt|token)s?\b.{0,40}(too long|exceed)"
    r"|exceed.{0,40}(token|context|length)|too many tokens",
    re.I,
)
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1a\ufffd]")


def too_long(said: str) -> bool:
    """Whether an error says that prompt and answer do not fit the model."""
    return bool(_TOO_LONG.search(said))


def said_by(record: Mapping[str, Any]) -> str:
    """The error a record holds, in the service's words; empty if none. Echoed input is left out.

    Knows `detail` (text, or FastAPI's list), and `error` as a text or an object with a `message`.
    """
    said = record.get("detail") or record.get("error") or ""
    if isinstance(said, list):  # FastAPI's validation errors
        return "; ".join(filter(None, map(_said_by_item, said)))
    if isinstance(said, dict):
        said = said.get("message") or said.get("msg") or "no text"
    return str(said)


def _said_by_item(item: Any) -> str:
    if not isinstance(item, dict):
        return item if isinstance(item, str) else ""
    where = item.get("loc")
    return f"{'.'.join(map(str, where if isinstance(where, list) else ()))}: {item.get('msg')}"


def status_in(record: Mapping[str, Any]) -> int | None:
    """The status an error record carries, in any of the usual places: HTTP's, or a number of the service's own."""
    error = record.get("error")
    inner = error if isinstance(error, Mapping) else {}
    found = (record.get("status_code"), inner.get("http_status_code"), inner.get("code"), record.get("code"))
    for value in (*found, record.get("error_code")):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def error_record(body: str) -> dict[str, Any]:
    """The record in the body of an error; plain text counts as its `detail`, what is no text does not."""
    try:
        return decode_object(body)
    except BackendError:
        return {} if _NO_TEXT.search(body) else {"detail": body}


def advice(kind: ErrorKind, status: int, key: Key | None) -> str:
    """What the user can do about an HTTP error."""
    match kind:
        case ErrorKind.AUTH if key:
            return f"The API key came from {key.source}: check it there."
        case ErrorKind.AUTH:
            return "No API key is configured: set key_env or key_command."
        case ErrorKind.QUOTA:
            return "The account's balance or quota is used up."
        case ErrorKind.MODEL_NOT_FOUND:
            return "Check url and model."
        case ErrorKind.UNREACHABLE if status == 407:
            return f"That is the proxy's answer. {PROXY_LOGIN}"
        case ErrorKind.RATE_LIMITED:
            return "Too many requests for this key or model: it is asked again later."
        case ErrorKind.OVERLOADED:
            return "The service is busy or broken: it is asked again later; if this stays, ask who runs it."
        case ErrorKind.PROTOCOL if status < 400:
            return "Check url: the service has moved, or this is not it."
        case ErrorKind.PROTOCOL:
            return "A gateway answered, not the service; it may be down or too slow."
    return ""
