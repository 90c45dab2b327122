"""Who may ask: the key check, and without a key a check that it is no web page. Must not know routes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from backends.keys import Key
from lsp_server.gateway.refusal import Cause, Refusal

_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})


class KeyCheck:
    """Takes the key as `X-API-KEY` or as `Authorization: Bearer`, in constant time.

    Without a key only this machine can connect, and so can every web page open on it: pages are told by their `Origin`,
    or by the name they have given this address (DNS rebinding).
    """

    def __init__(self, key: Key | None) -> None:
        self._digest = _digest(key.value) if key else None

    def __call__(self, headers: Mapping[str, str]) -> None:
        """Raises Refusal."""
        if self._digest is None:
            host = headers.get("host", "").lower()
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if "origin" in headers or name not in _LOCAL:
                raise Refusal(Cause.FORBIDDEN, "Web pages may not use this gateway while it has no key.")
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = headers.get("x-api-key", "") or (token.strip() if scheme.lower() == "bearer" else "")
        if not hmac.compare_digest(_digest(given), self._digest):
            raise Refusal(Cause.UNAUTHORIZED, "Invalid API key.")


def _digest(value: str) -> bytes:
    """Of equal length for all keys, so that not even the length can be timed."""
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).digest()
