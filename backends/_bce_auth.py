"""Baidu Cloud's keys: the `bce-auth-v1` signature, and temporary tokens fetched with a pair of keys.

Must not know what the signed requests ask for.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

import httpx

from backends.base import BackendError
from backends.keys import Key, KeySource, read_variable
from backends.settings import BackendSettings

SIGNED_FOR_S = 300  # as long as the official SDK has it
RENEW_S = 10.0  # a token is not used any more so shortly before it expires


@dataclass(frozen=True, slots=True, repr=False)
class KeyPair(Key):
    """A secret and the name of its owner, which is sent in the clear but shown no more than the secret."""

    identity: str


class PairSource(KeySource):
    """An identity, from a variable or as the plain key of the settings, and a secret key from a variable."""

    def __init__(self, settings: BackendSettings) -> None:
        super().__init__(settings)
        self._access, self._secret = settings.access_key_env, settings.secret_key_env

    async def get(self) -> KeyPair | None:
        """Raises BackendError(SETTINGS)."""
        meaning = "the access key (access_key_env)"
        identity = read_variable(self._access, meaning) if self._access else await super().get()
        if identity is None:
            return None
        secret = read_variable(self._secret, "the secret key (secret_key_env)")
        return KeyPair(secret.value, f"{identity.source} and {secret.source}", identity.value)


def signed(
    pair: KeyPair, method: str, url: httpx.URL, headers: Mapping[str, str], now: datetime | None = None
) -> dict[str, str]:
    """The headers that prove who asks: the time, and the signature over method, URL, `host` and `headers`.

    `headers` must be sent exactly so. `now` defaults to the present.
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    prefix = f"bce-auth-v1/{pair.identity}/{stamp}/{SIGNED_FOR_S}"
    covered = {"host": url.netloc.decode("ascii"), "x-bce-date": stamp}
    covered |= {name.lower(): value for name, value in headers.items()}
    request = canonical(method, url, covered)
    # The key is used as its hexadecimal digits, not as the bytes they stand for.
    signature = _hmac(_hmac(pair.value, prefix), request)
    names = ";".join(sorted(name for name, value in covered.items() if value.strip()))
    return {"x-bce-date": stamp, "authorization": f"{prefix}/{names}/{signature}"}


def canonical(method: str, url: httpx.URL, headers: Mapping[str, str]) -> str:
    """The text that is signed. `headers` have lower-case names."""
    path = quote(url.path, safe="/")
    pairs = (f"{_quoted(name)}={_quoted(value)}" for name, value in url.params.multi_items() if _counts(name))
    lines = (f"{_quoted(name)}:{_quoted(value.strip())}" for name, value in headers.items() if value.strip())
    return "\n".join([method, path, "&".join(sorted(pairs)), *sorted(lines)])


def _counts(name: str) -> bool:
    return name.lower() != "authorization"


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _hmac(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class Token:
    """What stands for a pair of keys for a while."""

    value: str
    lifetime_s: float


class TokenStore:
    """One temporary token, fetched when it is missing or about to expire; concurrent requests share one fetch."""

    def __init__(self, fetch: Callable[[KeyPair], Awaitable[Token]]) -> None:
        self._fetch = fetch
        self._pair: KeyPair | None = None
        self._task: asyncio.Task[Token | BackendError] | None = None
        self._begun = 0.0  # seconds of the loop's clock

    @property
    def current(self) -> str:
        """The token in use; empty if there is none."""
        outcome = self._outcome()
        return outcome.value if isinstance(outcome, Token) else ""

    async def get(self, pair: KeyPair) -> str:
        """Raises BackendError. A cancelled caller does not stop the fetch: the next request has its token."""
        now = asyncio.get_running_loop().time()
        if self._task is None or pair != self._pair or (self._task.done() and not self._good(now)):
            self._pair, self._begun = pair, now
            self._task = asyncio.create_task(self._run(pair))
        task = self._task
        await asyncio.wait({task})
        outcome = task.result()
        if isinstance(outcome, BackendError):
            raise BackendError(
                outcome.kind, outcome.message, status=outcome.status, retry_after_s=outcome.retry_after_s
            )
        return outcome.value

    def refused(self, token: str) -> None:
        """The service does not take this token. One fetched since stays."""
        if token and token == self.current:
            self._task = None

    async def aclose(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self, pair: KeyPair) -> Token | BackendError:
        try:
            return await self._fetch(pair)
        except BackendError as error:
            return error

    def _outcome(self) -> Token | BackendError | None:
        return self._task.result() if self._task and self._task.done() and not self._task.cancelled() else None

    def _good(self, now: float) -> bool:
        outcome = self._outcome()
        return isinstance(outcome, Token) and now < self._begun + outcome.lifetime_s - RENEW_S
