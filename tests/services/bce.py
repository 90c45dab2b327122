"""Recomputes `bce-auth-v1` signatures, independently of the backend under test and in any order of signed headers."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

_FORM = re.compile(r"(bce-auth-v1/([^/]+)/([^/]+)/(\d+))/([^/]*)/([0-9a-f]{64})")
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def encode(text: str, keep: bytes = b"") -> str:
    return "".join(chr(byte) if byte in _PLAIN or byte in keep else f"%{byte:02X}" for byte in text.encode())


def digest(key: str, text: str) -> str:
    return hmac.new(key.encode("ascii"), text.encode("ascii"), hashlib.sha256).hexdigest()


def problem(
    method: str,
    path: str,
    query: list[tuple[str, str]],
    headers: Mapping[str, str],
    secrets: Mapping[str, str],
    now: datetime | None = None,
) -> str:
    """What is wrong with a signed request; empty if nothing is. `secrets`: secret key by access key."""
    found = _FORM.fullmatch(headers.get("authorization", ""))
    if not found:
        return "AccessDenied, cause: no signature"
    prefix, access, stamp, lifetime, names, signature = found.groups()
    if access not in secrets:
        return f"NotFound, cause: Could not find credential. {access}"
    if headers.get("x-bce-date") != stamp:
        return "InvalidHTTPAuthHeader, cause: x-bce-date differs from the signature's time"
    signed_at = datetime.strptime(stamp, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    if abs((now or datetime.now(UTC)) - signed_at) > timedelta(seconds=int(lifetime)):
        return "RequestExpired, cause: the signature has expired"
    listed = names.split(";")
    if not {"host", "x-bce-date"} <= set(listed):
        return "InvalidHTTPAuthHeader, cause: host and x-bce-date must be signed"
    lines = sorted(f"{encode(name)}:{encode(headers[name].strip())}" for name in listed if headers.get(name))
    pairs = sorted(f"{encode(name)}={encode(value)}" for name, value in query if name.lower() != "authorization")
    request = "\n".join([method, encode(path, b"/"), "&".join(pairs), *lines])
    if not hmac.compare_digest(digest(digest(secrets[access], prefix), request), signature):
        return "SignatureDoesNotMatch, cause: Fail to authn user: Signature does not match"
    return ""
