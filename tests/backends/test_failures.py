"""Failures below HTTP: what is said of them and of the proxy between; what must not stand in the way or in a log."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from backends._failures import failure
from backends.base import BackendError, BackendRequest, ErrorKind
from tests.services.ffm import FfmService
from tests.services.http2 import CA, h2_service, server_context
from tests.services.listening import listening
from tests.services.proxy import Proxy, proxy_server
from tests.services.raw import events, http, raw_server

PART = '{"generated_text": "x", "finish_reason": null}'
FINAL = '{"generated_text": "x", "finish_reason": "stop"}'


@pytest.fixture(autouse=True)
def _no_proxies_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(key="test-key") as running:
        yield running


@pytest.fixture
def failing(make_ffm: Any, question: BackendRequest, collect: Any) -> Any:
    """The error of a request to `url`."""

    async def run(url: str, **settings: Any) -> BackendError:
        with pytest.raises(BackendError) as caught:
            await collect(make_ffm(url, **settings), question)
        return caught.value

    return run


# What is said ---------------------------------------------------------------------------------------------------------


async def test_the_systems_own_words_say_why_nothing_was_reached(failing: Any) -> None:
    error = await failing("http://127.0.0.1:9/api")
    assert error.kind is ErrorKind.UNREACHABLE
    assert "(Connection refused). Is the service running" in error.message
    assert "proxy" not in error.message


async def test_plain_http_where_tls_is_spoken(failing: Any) -> None:
    async with h2_service(b"") as service:
        error = await failing(service.url.replace("https:", "http:"))
    assert error.kind is ErrorKind.PROTOCOL
    assert "http or https" in error.message


async def test_tls_where_plain_http_is_spoken(failing: Any) -> None:
    async def serve(reader: Any, writer: Any) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()

    async with listening(serve) as port:
        error = await failing(f"https://127.0.0.1:{port}/api")
    assert error.kind is ErrorKind.UNREACHABLE
    assert "does not answer in TLS" in error.message
    assert "ca_file" not in error.message


@pytest.mark.parametrize("why", ["Hostname mismatch, certificate is not valid for 'a'", "certificate has expired"])
def test_no_authority_is_asked_for_where_none_would_help(why: str) -> None:
    import httpx

    error = httpx.ConnectError(f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {why} (_ssl.c:1006)")
    message = failure(error, httpx.URL("https://a.example/x"), begun=False, trusted="SSL_CERT_FILE, /a.pem").message
    assert f"({'certificate verify failed: ' + why})." in message
    assert "ca_file" not in message


async def test_a_redirect_that_cannot_be_read(failing: Any) -> None:
    answer = http(b"", status="308 Permanent Redirect", headers="location: http://[::1\r\n", length=True)
    async with raw_server(answer) as raw:
        error = await failing(raw.url)
    assert error.kind is ErrorKind.PROTOCOL
    assert "redirects to what is no address" in error.message


class BrokenH2:
    """HTTP/2 that goes wrong in a way of its own, at the first connection only."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        broken = self.connections == 1
        connection = H2Connection(H2Configuration(client_side=False, validate_outbound_headers=False))
        connection.initiate_connection()
        while data := await reader.read(65536):
            for event in connection.receive_data(data):
                if isinstance(event, StreamEnded):
                    head = [(":status", "99x" if broken and self.how == "status" else "200")]
                    connection.send_headers(event.stream_id, [*head, ("content-type", "text/event-stream")])
                    body = events(PART if broken else FINAL)
                    connection.send_data(event.stream_id, body, end_stream=not broken)
            writer.write(connection.data_to_send())
            await writer.drain()
            if broken and connection.inbound_flow_control_window and connection.open_inbound_streams:
                if self.how == "frames":
                    writer.write(b"\x00\x00\x01\x03\x00\x00\x00\x00\x00\x00")  # RST_STREAM of no stream
                    await writer.drain()
                elif self.how == "cut":
                    writer.transport.abort()
                    return


@pytest.mark.parametrize("how", ["status", "frames", "cut"])
async def test_whatever_http_2_goes_wrong_with_is_an_error_of_the_backend(
    make_ffm: Any, question: BackendRequest, collect: Any, how: str
) -> None:
    service = BrokenH2(how)
    async with listening(service.serve, server_context(alpn=("h2",))) as port:
        backend = make_ffm(f"https://127.0.0.1:{port}/api", ca_file=str(CA))
        with pytest.raises(BackendError) as caught:
            await collect(backend, question)
        assert caught.value.kind in (ErrorKind.PROTOCOL, ErrorKind.TRUNCATED, ErrorKind.UNREACHABLE)
        await backend.aclose()
        again = make_ffm(f"https://127.0.0.1:{port}/api", ca_file=str(CA))
        assert [delta.text for delta in await collect(again, question)] == ["x"]


# Proxies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["setting proxy", "from the environment"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_in_between_is_named_without_its_login(
    failing: Any, monkeypatch: pytest.MonkeyPatch, scheme: str, where: str
) -> None:
    async def close(reader: Any, writer: Any) -> None:
        await reader.readuntil(b"\r\n\r\n")

    for ended in (False, True):
        async with listening(close) as port:
            given = f"http://ann:secret-word@127.0.0.1:{port if ended else 9}"
            settings = {"proxy": given} if where == "setting proxy" else {}
            if not settings:
                monkeypatch.setenv("HTTPS_PROXY" if scheme == "https" else "ALL_PROXY", given)
            error = await failing(f"{scheme}://service.invalid/api", **settings)
        assert f"through the proxy http://127.0.0.1:{port if ended else 9} ({where})." in error.message
        assert "secret-word" not in error.message


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "ftp://127.0.0.1:9", "http://127.0.0.1:9"])
async def test_proxies_of_the_environment_do_not_stand_before_this_machine(
    make_ffm: Any,
    question: BackendRequest,
    collect: Any,
    service: FfmService,
    monkeypatch: pytest.MonkeyPatch,
    proxy: str,
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    assert await collect(make_ffm(service.url), question)


async def test_a_proxy_spoken_to_in_tls_is_checked_with_ca_file(
    make_ffm: Any, question: BackendRequest, collect: Any, failing: Any, service: FfmService
) -> None:
    proxy = Proxy()
    url = f"http://service.invalid:{service.port}/api"
    async with listening(proxy.serve, server_context()) as port:
        assert await collect(make_ffm(url, proxy=f"https://127.0.0.1:{port}", ca_file=str(CA)), question)
        assert proxy.lines == [f"POST {url}/models/text_infilling"]
        error = await failing(url, proxy=f"https://127.0.0.1:{port}")
        assert (error.kind, len(proxy.lines)) == (ErrorKind.UNREACHABLE, 1)
        assert "ca_file" in error.message


async def test_a_proxy_without_tls_needs_none(
    make_ffm: Any, question: BackendRequest, collect: Any, service: FfmService
) -> None:
    async with proxy_server() as proxy:
        assert await collect(make_ffm(f"http://service.invalid:{service.port}/api", proxy=proxy.url), question)


# Logs -----------------------------------------------------------------------------------------------------------------


async def test_the_packing_of_headers_over_http_2_is_not_logged(
    make_ffm: Any, question: BackendRequest, collect: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with h2_service(events(FINAL)) as service:
        await collect(make_ffm(service.url, ca_file=str(CA), headers={"x-team": "canary-team"}), question)
    assert "test-key" not in caplog.text
    assert "canary-team" not in caplog.text
    assert "Encoded" not in caplog.text, "neither packed, which anyone can unpack"
