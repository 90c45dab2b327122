"""The HTTP layer: every failure has a kind, connections end when they should, proxies and certificates are honoured."""

from __future__ import annotations

import asyncio
import email.utils
import gc
import gzip
import inspect
import json
import logging
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from backends._failures import failure
from backends._http import HttpClient, retry_after_s, status_kind
from backends._safe import safe_text, shown_url
from backends.base import BackendError, BackendRequest, ErrorKind
from backends.settings import BackendSettings
from tests.services.raw import RawServer, events, http, raw_server

SERVICES = Path(__file__).parent.parent / "services"
CA, CERTIFICATE = SERVICES / "localhost-ca.pem", SERVICES / "localhost.pem"
FINAL = '{"generated_text": "x", "finish_reason": "stop"}'
URL = httpx.URL("https://user:pass@host.example/api/models/text_infilling?token=secret")
EXCEPTIONS = [
    value for name in httpx.__all__ if inspect.isclass(value := getattr(httpx, name)) and issubclass(value, Exception)
]
KINDS = {
    httpx.ConnectTimeout: ErrorKind.TIMEOUT,
    httpx.ReadTimeout: ErrorKind.TIMEOUT,
    httpx.WriteTimeout: ErrorKind.TIMEOUT,
    httpx.PoolTimeout: ErrorKind.TIMEOUT,
    httpx.TimeoutException: ErrorKind.TIMEOUT,
    httpx.ConnectError: ErrorKind.UNREACHABLE,
    httpx.ProxyError: ErrorKind.UNREACHABLE,
    httpx.ReadError: ErrorKind.UNREACHABLE,
    httpx.WriteError: ErrorKind.UNREACHABLE,
    httpx.CloseError: ErrorKind.UNREACHABLE,
    httpx.NetworkError: ErrorKind.UNREACHABLE,
    httpx.UnsupportedProtocol: ErrorKind.SETTINGS,
    httpx.InvalidURL: ErrorKind.SETTINGS,
    httpx.LocalProtocolError: ErrorKind.SETTINGS,
}
LOST_LATER = {
    httpx.ReadError,
    httpx.WriteError,
    httpx.CloseError,
    httpx.NetworkError,
    httpx.RemoteProtocolError,
}


def settings(**values: Any) -> BackendSettings:
    return BackendSettings(**{"kind": "ffm", "url": "http://127.0.0.1/api", **values})


def exception_of(kind: Any) -> Exception:
    """An instance of whichever class of httpx, as if it told a secret."""
    if issubclass(kind, httpx.HTTPStatusError):
        request = httpx.Request("POST", URL)
        return httpx.HTTPStatusError("secret", request=request, response=httpx.Response(500, request=request))
    try:
        return kind("boom")  # type: ignore[no-any-return]
    except TypeError:  # those with a text of their own
        return kind()  # type: ignore[no-any-return]


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: str(kind.__name__))
async def test_every_exception_of_httpx_becomes_one_of_ours(kind: type[Exception], begun: bool) -> None:
    client = HttpClient("work", settings())
    with pytest.raises(BackendError) as caught:
        async with client.within(asyncio.get_running_loop().time() + 20, URL, begun=begun):
            raise exception_of(kind)
    expected = KINDS.get(kind, ErrorKind.PROTOCOL)
    assert caught.value.kind is (ErrorKind.TRUNCATED if begun and kind in LOST_LATER else expected)
    assert "https://host.example/api/models/text_infilling" in caught.value.message
    assert "secret" not in caught.value.message
    assert "pass" not in caught.value.message
    assert caught.value.__suppress_context__


async def test_other_exceptions_are_left_alone() -> None:
    client = HttpClient("work", settings())
    with pytest.raises(KeyError):
        async with client.within(asyncio.get_running_loop().time() + 20, URL):
            raise KeyError


def test_the_text_of_errors_that_quote_headers_is_not_told() -> None:
    error = failure(httpx.LocalProtocolError("Illegal header value b'secret'"), URL, begun=False)
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("status", "html", "kind"),
    [
        (204, False, ErrorKind.PROTOCOL),
        (301, False, ErrorKind.PROTOCOL),
        (400, False, ErrorKind.BAD_REQUEST),
        (401, True, ErrorKind.AUTH),
        (405, False, ErrorKind.BAD_REQUEST),
        (408, False, ErrorKind.TIMEOUT),
        (429, True, ErrorKind.RATE_LIMITED),
        (500, False, ErrorKind.OVERLOADED),
        (500, True, ErrorKind.PROTOCOL),
        (503, True, ErrorKind.OVERLOADED),
    ],
)
def test_status(status: int, html: bool, kind: ErrorKind) -> None:
    assert status_kind(status, html=html) is kind


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("soon", None),
        ("", None),
        ("nan days", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s(httpx.Response(429, headers={"retry-after": value})) == seconds


def test_retry_after_as_a_date() -> None:
    def seconds(date: float) -> float | None:
        headers = {"retry-after": email.utils.formatdate(date, usegmt=True)}
        return retry_after_s(httpx.Response(429, headers=headers))

    assert seconds(time.time() - 100) == 0.0
    assert 3000 < (seconds(time.time() + 3600) or 0) <= 3600
    assert retry_after_s(httpx.Response(429)) is None


def test_shown_url_and_safe_text() -> None:
    assert shown_url(httpx.URL("http://a:b@h:81/p?q=1#f")) == "http://h:81/p"
    assert shown_url(httpx.URL("http://[::1]:81/p")) == "http://[::1]:81/p"
    assert safe_text("a\n  b.") == "a b"
    assert safe_text("key k1 of k1", secrets=("k1",)) == "key *** of ***"
    assert safe_text("bad: secret = 1", source="x\n  secret = 1\n") == "bad: …"
    assert safe_text("x = 1", source="x = 1") == "x = 1"  # too short a line to say anything
    assert len(safe_text("a" * 1000)) == 200


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("http://127.0.0.1:8000", False),
        ("http://127.8.8.8", False),
        ("http://localhost/x", False),
        ("https://a.localhost", False),
        ("http://[::1]:1", False),
        ("http://localhost.example", True),
        ("http://10.0.0.1", True),
        ("https://service.example/api", True),
    ],
)
def test_remote(url: str, remote: bool) -> None:
    assert HttpClient("work", settings(url=url)).remote is remote


def test_a_proxy_takes_text_off_the_machine() -> None:
    assert HttpClient("work", settings(proxy="http://proxy.example:3128")).remote


@pytest.mark.parametrize(
    "url", ["", "service.example/api", "ftp://service.example", "https://", "http://h:port/", "http://h:65536/"]
)
def test_a_url_that_cannot_be_used_is_named(url: str) -> None:
    with pytest.raises(BackendError, match=r"^backends\.work\.url .*allowed: ") as caught:
        HttpClient("work", settings(url=url))
    assert caught.value.kind is ErrorKind.SETTINGS


@pytest.mark.parametrize(
    "headers",
    [
        {"x key": "a"},
        {"x:": "a"},
        {"": "a"},
        {"x": "a\nb"},
        {"x": "é"},
        {"x": "a "},
        {"Content-Length": "3"},
        {"transfer-encoding": "chunked"},
    ],
)
def test_a_header_that_cannot_be_sent_is_named(headers: dict[str, str]) -> None:
    with pytest.raises(BackendError, match=r"^backends\.work\.headers") as caught:
        HttpClient("work", settings(headers=headers))
    assert caught.value.kind is ErrorKind.SETTINGS


def test_the_path_is_added_to_the_base_and_its_query_kept() -> None:
    client = HttpClient("work", settings(url="https://h.example/api/?version=2"))
    assert str(client.url("/models")) == "https://h.example/api/models?version=2"


@pytest.mark.parametrize(
    ("proxy", "says"),
    [("ftp://proxy.example", r"^backends\.work\.proxy is not"), ("socks5://proxy.example", r"SOCKS.*httpx\[socks\]")],
)
async def test_a_proxy_that_cannot_be_used_is_named(make_ffm: Any, proxy: str, says: str) -> None:
    with pytest.raises(BackendError, match=says) as caught:
        await make_ffm("http://service.example/api", proxy=proxy).prepare()
    assert caught.value.kind is ErrorKind.SETTINGS


async def test_proxies_of_the_environment_are_honoured(
    make_ffm: Any, question: BackendRequest, collect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with raw_server(http(events(FINAL))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        await collect(make_ffm("http://service.example/api"), question)
        assert proxy.requests[0].startswith(b"POST http://service.example/api/models/text_infilling HTTP/1.1\r\n")


async def test_but_not_for_this_machine(
    make_ffm: Any, question: BackendRequest, collect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with raw_server(http(events(FINAL))) as raw:
        assert await collect(make_ffm(raw.url), question)


async def test_a_configured_proxy_is_used_for_every_host(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with raw_server(http(events(FINAL))) as proxy:
        await collect(make_ffm("http://127.0.0.1:9/api", proxy=f"http://127.0.0.1:{proxy.port}"), question)
        assert proxy.requests[0].startswith(b"POST http://127.0.0.1:9/api/")


@asynccontextmanager
async def tls_server(answer: bytes) -> AsyncIterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    raw = RawServer(answer)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/api"
    finally:
        server.close()
        await server.wait_closed()


async def test_a_certificate_of_ones_own_authority(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with tls_server(http(events(FINAL))) as url:
        with pytest.raises(BackendError, match=r"certificate.*ca_file") as caught:
            await collect(make_ffm(url), question)
        assert caught.value.kind is ErrorKind.UNREACHABLE
        assert await collect(make_ffm(url, ca_file=str(CA)), question)


@pytest.mark.parametrize(("name", "why"), [("missing.pem", "No such file"), ("empty.pem", "holds no PEM certificate")])
async def test_a_ca_file_that_cannot_be_used_is_named(make_ffm: Any, tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(BackendError, match=rf"^backends\.work\.ca_file, .*{name}, cannot be used: {why}") as caught:
        await make_ffm("https://127.0.0.1:9/api", ca_file=str(tmp_path / name)).prepare()
    assert caught.value.kind is ErrorKind.SETTINGS


async def test_nobody_listening(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    with pytest.raises(BackendError, match=r"^http://127\.0\.0\.1:9/api/models/text_infilling cannot be rea") as caught:
        await collect(make_ffm("http://127.0.0.1:9/api"), question)
    assert caught.value.kind is ErrorKind.UNREACHABLE


async def test_slow_headers(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with raw_server(b"HTTP/1.1 200 OK\r\ncontent-type: text/ev", ending="hold") as raw:
        with pytest.raises(BackendError, match=r"did not answer within 0\.1 s") as caught:
            await collect(make_ffm(raw.url, timeout_s=0.1), question)
        assert caught.value.kind is ErrorKind.TIMEOUT
        await raw.gone.wait()


@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json"])
async def test_gzip(make_ffm: Any, question: BackendRequest, collect: Any, content_type: str) -> None:
    plain = events(FINAL) if content_type == "text/event-stream" else FINAL.encode()
    packed = gzip.compress(plain)
    headers = "content-encoding: gzip\r\n"
    async with raw_server(http(packed, content_type=content_type, headers=headers), split=5) as raw:
        (delta,) = await collect(make_ffm(raw.url), question)
        assert delta.text == "x"
    damaged = packed[:10] + b"\xff\xff" + packed[12:]
    async with raw_server(http(damaged, content_type=content_type, headers=headers)) as raw:
        with pytest.raises(BackendError) as caught:
            await collect(make_ffm(raw.url), question)
        assert caught.value.kind is ErrorKind.PROTOCOL


async def test_an_event_of_more_than_a_mebibyte(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    text = "玉\u2028" * 400_000
    record = json.dumps({"generated_text": text, "finish_reason": "length"}, ensure_ascii=False)
    async with raw_server(http(events(record)), split=65_537) as raw:
        (delta,) = await collect(make_ffm(raw.url), question)
        assert delta.text == text


@pytest.mark.parametrize("how", ["cancel", "aclose"])
async def test_cancelling_or_closing_closes_the_connection(make_ffm: Any, question: BackendRequest, how: str) -> None:
    part = '{"generated_text": "x", "finish_reason": null}'
    async with raw_server(http(events(part)), ending="hold") as raw:
        got = asyncio.Event()

        async def consume() -> None:
            async with aclosing(make_ffm(raw.url).stream(question)) as deltas:
                async for _ in deltas:
                    got.set()
                    if how == "aclose":
                        return

        task = asyncio.create_task(consume())
        await got.wait()
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await raw.gone.wait()
        await asyncio.gather(task, return_exceptions=True)


async def test_cancelling_before_any_answer_closes_the_connection(make_ffm: Any, question: BackendRequest) -> None:
    async with raw_server(b"", ending="hold") as raw:
        task = asyncio.create_task(anext(make_ffm(raw.url).stream(question)))
        await raw.begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await raw.gone.wait()


@pytest.mark.parametrize("steps", [0, 1, 5])
async def test_closing_the_backend_ends_what_is_still_read_and_may_be_repeated(
    make_ffm: Any, question: BackendRequest, collect: Any, steps: int
) -> None:
    async with raw_server(http(events(FINAL)), ending="hold") as raw:
        backend = make_ffm(raw.url)
        unfinished: list[str] = []
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(hooks.firstiter, lambda generator: unfinished.append(repr(generator)))
        await collect(backend, question)
        for _ in range(steps):
            await asyncio.sleep(0)
        await backend.aclose()
        await backend.aclose()
        sys.set_asyncgen_hooks(*hooks)
        await raw.gone.wait()
        gc.collect()
        # httpx leaves its own inner generators to the garbage collector; ours are closed.
        assert [name for name in unfinished if re.search(r"object (json_records|EventSource|FfmBackend)\b", name)] == []


async def test_neither_url_nor_headers_are_logged(
    make_ffm: Any, question: BackendRequest, collect: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with raw_server(http(events(FINAL), headers="x-session: canary-header\r\n")) as raw:
        await collect(make_ffm(raw.url + "?token=canary-query"), question)
        assert b"canary-query" in raw.requests[0]
    assert "canary" not in caplog.text


@pytest.mark.parametrize(("trusted", "shown"), [("ca_file, /a.pem", "against ca_file, /a.pem."), ("", "failed (SSL")])
def test_what_a_certificate_was_checked_against_is_said(trusted: str, shown: str) -> None:
    error = httpx.ConnectError("SSL: CERTIFICATE_VERIFY_FAILED")
    assert shown in failure(error, httpx.URL("https://a.example"), begun=False, trusted=trusted).message
