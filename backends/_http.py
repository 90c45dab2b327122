"""One pooled HTTP client per backend; every failure of HTTP told as a BackendError. Must not know any one service."""

from __future__ import annotations

import asyncio
import email.utils
import ipaddress
import logging
import math
import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cached_property
from typing import Any

import httpx

from backends._exchange import Exchange, told_by_httpx
from backends._failures import failure, proxy_of
from backends._safe import shown_url
from backends.base import BackendError, ErrorKind
from backends.settings import BackendSettings

for _name in ("httpx", "httpcore", "hpack"):
    # Below WARNING they write whole URLs and headers.
    logging.getLogger(_name).setLevel(logging.WARNING)

KEEPALIVE_S = 60.0  # pauses in typing are longer than httpx's 5 s; a new TLS connection costs two or three round trips
MOST_CONNECTIONS, MOST_IDLE_CONNECTIONS = 20, 4  # at once; one per document that is typed in, and hedging
DRAIN_S = 0.25  # how long to wait for the end of a body whose last record was read
ERROR_BODY_BYTES = 64 * 1024

FRAMING = frozenset({"content-length", "transfer-encoding"})
# What can go wrong with a connection. httpcore lets through what the system says of some addresses.
FAILURES = (
    httpx.HTTPError,
    httpx.StreamError,
    httpx.InvalidURL,
    httpx.CookieConflict,
    OSError,
    OverflowError,
    ExceptionGroup,
)

STATUS_KINDS: Mapping[int, ErrorKind] = {
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    404: ErrorKind.MODEL_NOT_FOUND,
    407: ErrorKind.UNREACHABLE,  # said by a proxy
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.CONTEXT_TOO_LONG,
    429: ErrorKind.RATE_LIMITED,
    503: ErrorKind.OVERLOADED,
    529: ErrorKind.OVERLOADED,
}


def status_kind(status: int, *, html: bool) -> ErrorKind:
    """What an HTTP status means. A web page in place of the service's own error comes from a gateway."""
    if status in STATUS_KINDS:
        return STATUS_KINDS[status]
    if html or status < 400:
        return ErrorKind.PROTOCOL
    return ErrorKind.BAD_REQUEST if status < 500 else ErrorKind.OVERLOADED


def retry_after_s(response: httpx.Response) -> float | None:
    """The Retry-After header in seconds from now; None if absent or unreadable."""
    value = response.headers.get("retry-after", "").strip()
    with suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with suppress(ValueError, TypeError):
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None


class HttpClient:
    """The connections of one backend. Nothing is opened before the first request. Raises only BackendError."""

    def __init__(self, name: str, settings: BackendSettings) -> None:
        self._settings = settings
        self._path = f"backends.{name}"
        self._base = _base_url(self._path, settings.url)
        self._headers = _checked_headers(self._path, settings.headers)
        self._client: httpx.AsyncClient | None = None
        self._most, self._most_idle = MOST_CONNECTIONS, MOST_IDLE_CONNECTIONS
        self._draining: dict[asyncio.Task[None], AsyncExitStack] = {}
        self._ending: set[asyncio.Task[None]] = set()  # close what nobody waits for any more

    @cached_property
    def remote(self) -> bool:
        """Whether requests leave this machine. A proxy may be anywhere, so one makes it so."""
        return bool(self._settings.proxy) or not _is_loopback(self._base.host)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values of configured headers, any of which may be a credential."""
        return tuple(value for value in self._headers.values() if len(value) >= 8)

    def at_once(self, requests: int) -> None:
        """Have room for so many requests at a time, if that is more than usual. Must come before the first one."""
        self._most, self._most_idle = max(self._most, requests), max(self._most_idle, requests)

    def url(self, path: str) -> httpx.URL:
        """The base URL with `path` behind it; a query of the base stays."""
        return self._base.copy_with(path=self._base.path.rstrip("/") + path)

    async def ready(self) -> httpx.AsyncClient:
        if self._client is None:
            context = await asyncio.to_thread(self._tls)  # reads some hundred certificates: 50 ms
            if self._client is None:
                self._client = self._open_client(context)
        return self._client

    async def post(self, url: httpx.URL, *, headers: Mapping[str, str], body: bytes) -> httpx.Response:
        """Send a request; the head of the answer has arrived. The caller closes the response. Raises httpx's errors.

        Configured headers win over `headers`. Redirects are not followed: they could take the key elsewhere.
        """
        return await self._send("POST", url, headers, body)

    async def get(self, url: httpx.URL, *, headers: Mapping[str, str]) -> httpx.Response:
        """As `post`, without a body."""
        return await self._send("GET", url, headers, None)

    async def _send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes | None
    ) -> httpx.Response:
        client = await self.ready()
        merged = httpx.Headers(headers)
        merged.update(self._headers)

        async def once(exchange: Exchange) -> httpx.Response:
            extensions = {"trace": exchange}
            request = client.build_request(method, url, headers=merged, content=body, extensions=extensions)
            return await client.send(request, stream=True)

        shared = url.scheme == "https"  # by HTTP/2, perhaps
        exchange = Exchange(client, shared=shared)
        try:
            return await self._sent(once, exchange)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if exchange.connected:
                raise
        return await self._sent(
            once, Exchange(client, shared=shared)
        )  # services close connections they have kept for long

    async def _sent(
        self, send: Callable[[Exchange], Coroutine[Any, Any, httpx.Response]], exchange: Exchange
    ) -> httpx.Response:
        """Send in a task of its own: whoever cancels this one must not hit httpcore at any point, see `Exchange`."""
        task = asyncio.create_task(send(exchange))
        waited = False
        try:
            await asyncio.wait({task})
            waited = True
        finally:
            if not waited or task.cancelled() or task.exception() is not None:
                self._apart(self._abandoned(task, exchange))
        with told_by_httpx():
            return task.result()

    async def _abandoned(self, task: asyncio.Task[httpx.Response], exchange: Exchange) -> None:
        if not task.done():
            exchange.abandon(task)
            await asyncio.wait({task})
        if not task.cancelled() and task.exception() is None:
            await self.release(task.result())
        await exchange.close()

    async def release(self, response: httpx.Response) -> None:
        """Give the connection back, or close it if the answer was not read to its end. Goes on if it is cancelled."""

        async def run() -> None:
            with suppress(*FAILURES), told_by_httpx():
                await response.aclose()
            await response.request.extensions["trace"].close()

        await asyncio.wait({self._apart(run())})

    def _apart(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task

    @asynccontextmanager
    async def within(self, deadline: float, url: httpx.URL, *, begun: bool = False) -> AsyncIterator[None]:
        """Run HTTP calls until `deadline` (seconds of the loop's clock); whatever fails is a BackendError.

        Read timeouts would not do: pings reset them. Must not span a `yield` of the caller.
        """
        try:
            async with asyncio.timeout_at(deadline):
                yield
        except TimeoutError:
            what = "did not finish its answer" if begun else "did not answer"
            limit = f"{self._settings.timeout_s:g} s (timeout_s)"
            message = f"{shown_url(url)} {what} within {limit}. {'' if begun else self._through(url)}"
            raise BackendError(ErrorKind.TIMEOUT, message.rstrip()) from None
        except FAILURES as error:
            told = failure(error, url, begun=begun, trusted=self._trusted(), through=self._through(url))
            raise told from None  # the cause may quote a header

    def _through(self, url: httpx.URL) -> str:
        """Which proxy is asked, if any; a sentence."""
        return proxy_of(self._settings.proxy, url) if self.remote else ""

    def _trusted(self) -> str:
        """Where the certificates are from that services are checked against."""
        if self._settings.ca_file:
            return f"ca_file, {self._settings.ca_file}"
        names = [name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
        return f"{names[0]}, {os.environ[names[0]]}" if names else "the authorities that come with httpx"

    def drain(self, rest: AsyncGenerator[Any, None], stack: AsyncExitStack) -> None:
        """Take over a response whose last record was read, so that its connection can be used again.

        Nobody waits for it; a body that does not end within `DRAIN_S` is cut off.
        """

        async def run() -> None:
            with suppress(httpx.HTTPError, TimeoutError, BackendError):
                async with stack, asyncio.timeout(DRAIN_S):
                    async for _ in rest:
                        pass

        task = asyncio.create_task(run())
        self._draining[task] = stack
        task.add_done_callback(lambda done: self._draining.pop(done, None))

    async def aclose(self) -> None:
        for task, stack in tuple(self._draining.items()):
            task.cancel()
            await asyncio.wait({task})
            await stack.aclose()  # a task cancelled before its first step has not entered it
        while self._ending:
            await asyncio.wait(self._ending)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _open_client(self, context: ssl.SSLContext) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                verify=context,
                proxy=self._proxy(context),
                # Environment proxies are honoured, but never for this machine itself, even if they are of no use.
                trust_env=self.remote,
                timeout=httpx.Timeout(None, connect=self._settings.connect_timeout_s),
                limits=httpx.Limits(
                    max_connections=self._most,
                    max_keepalive_connections=self._most_idle,
                    keepalive_expiry=KEEPALIVE_S,
                ),
                headers={"user-agent": "midfill"},
                http2=self._base.scheme == "https",  # where the service offers it in the TLS handshake
            )
        except ImportError:
            hint = "A SOCKS proxy needs the package socksio: install httpx[socks] beside midfill."
            raise BackendError(ErrorKind.SETTINGS, hint) from None
        except (ValueError, httpx.InvalidURL):
            where = f"{self._path}.proxy" if self._settings.proxy else "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"
            raise BackendError(ErrorKind.SETTINGS, f"{where} is not a proxy URL such as http://host:3128.") from None

    def _proxy(self, context: ssl.SSLContext) -> httpx.Proxy | None:
        """The configured proxy. One that is spoken to in TLS is checked as services are."""
        given = self._settings.proxy
        return httpx.Proxy(given, ssl_context=context if given.startswith("https:") else None) if given else None

    def _tls(self) -> ssl.SSLContext:
        """Raises BackendError(SETTINGS)."""
        plain = self._base.scheme == "http" and not self._settings.proxy.startswith("https:")
        if plain and not self._settings.ca_file:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and costs nothing
        context = self._authorities()
        certificate = self._settings.client_cert
        if certificate:
            try:
                # The password is never asked for: a prompt would read the editor's messages.
                context.load_cert_chain(certificate, self._settings.client_key or None, password="")
            except OSError as error:  # also ssl.SSLError
                files = " and ".join(filter(None, (certificate, self._settings.client_key)))
                why = "no certificate and its key" if isinstance(error, ssl.SSLError) else error.strerror
                raise BackendError(
                    ErrorKind.SETTINGS, f"{self._path}.client_cert and client_key, {files}, cannot be used: {why}."
                ) from None
        return context

    def _authorities(self) -> ssl.SSLContext:
        """Trusts `ca_file`, else what SSL_CERT_FILE or SSL_CERT_DIR names, else the authorities httpx brings along."""
        given = self._settings.ca_file
        try:
            return ssl.create_default_context(cafile=given) if given else httpx.create_ssl_context()
        except OSError as error:  # also ssl.SSLError
            why = "holds no PEM certificate" if isinstance(error, ssl.SSLError) else error.strerror
            name = f"{self._path}.ca_file, {given}" if given else f"SSL_CERT_FILE, {os.environ.get('SSL_CERT_FILE')}"
            raise BackendError(ErrorKind.SETTINGS, f"{name}, cannot be used: {why}.") from None


def _base_url(path: str, text: str) -> httpx.URL:
    allowed = "the base URL of the service, such as https://host/api"
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        raise BackendError(ErrorKind.SETTINGS, f"{path}.url cannot be read; allowed: {allowed}.") from None
    if url.scheme not in ("http", "https") or not url.host:
        what = "is not set" if not text else "is not an http or https URL"
        raise BackendError(ErrorKind.SETTINGS, f"{path}.url {what}; allowed: {allowed}.")
    if not 0 < (url.port or 1) < 65536:
        raise BackendError(ErrorKind.SETTINGS, f"{path}.url has the port {url.port}; allowed: 1 to 65535.")
    return url


def _checked_headers(path: str, headers: Mapping[str, str]) -> httpx.Headers:
    for name, value in headers.items():
        if not (name.isascii() and name.replace("-", "").replace("_", "").isalnum()):
            raise BackendError(ErrorKind.SETTINGS, f"{path}.headers: {name!r} is not a header's name.")
        if name.lower() in FRAMING:
            raise BackendError(ErrorKind.SETTINGS, f"{path}.headers.{name} cannot be set: it belongs to the request.")
        if not (value.isascii() and value.isprintable() and value == value.strip()):
            message = f"{path}.headers.{name} must be printable ASCII, without blanks around it."
            raise BackendError(ErrorKind.SETTINGS, message)
    return httpx.Headers(dict(headers))


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
