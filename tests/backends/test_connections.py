"""What connections are made of: HTTP/2, client certificates, the environment's proxies and certificates, reuse."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from backends._http import MOST_CONNECTIONS, MOST_IDLE_CONNECTIONS
from backends.base import BackendError, BackendRequest, ErrorKind
from tests.services.ffm import FfmService
from tests.services.http2 import CA, CERTIFICATE, CLIENT, h2_service, server_context
from tests.services.listening import listening
from tests.services.proxy import proxy_server
from tests.services.raw import RawServer, events, http

FINAL = '{"generated_text": "x", "finish_reason": "stop"}'
PART = '{"generated_text": "x", "finish_reason": null}'


@pytest.fixture(autouse=True)
def _no_proxies_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.lower().endswith("_proxy") or name.startswith("SSL_CERT"):
            monkeypatch.delenv(name)


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(key="test-key") as running:
        yield running


# HTTP/2 ---------------------------------------------------------------------------------------------------------------


async def test_http_2_is_spoken_where_it_is_offered(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with h2_service(events(PART, FINAL)) as service:
        backend = make_ffm(service.url, ca_file=str(CA))
        for _ in range(3):
            assert "".join(delta.text for delta in await collect(backend, question)) == "xx"
        both = await asyncio.gather(collect(backend, question), collect(backend, question))
        assert [len(deltas) for deltas in both] == [2, 2]
        assert (len(service.requests), service.connections, service.reset) == (5, 1, [])
        assert b"<FILL_ME>" in service.requests[0]


async def test_and_http_1_where_it_is_not(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with tls_server(alpn=("http/1.1",)) as (url, raw):
        await collect(make_ffm(url, ca_file=str(CA)), question)
        assert raw.requests[0].startswith(b"POST /api/models/text_infilling HTTP/1.1\r\n")


@pytest.mark.parametrize("how", ["cancel", "close"])
@pytest.mark.parametrize("held", ["head", "body"])
async def test_a_request_taken_back_is_told_to_the_service_and_the_connection_stays(
    make_ffm: Any, question: BackendRequest, collect: Any, held: str, how: str
) -> None:
    async with h2_service(events(PART), answered=0, held=held) as service:
        backend = make_ffm(service.url, ca_file=str(CA))
        got = asyncio.Event()

        async def consume() -> None:
            async with aclosing(backend.stream(question)) as deltas:
                async for _ in deltas:
                    got.set()
                    if how == "close":
                        return

        for number in range(1, 151):  # more than a connection has streams at once
            got.clear()
            service.came.clear()
            service.taken_back.clear()
            task = asyncio.create_task(consume())
            await (got if held == "body" else service.came).wait()
            if how == "cancel" or held == "head":
                task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await service.taken_back.wait()
            assert service.reset == [8] * number
        service.answered, service.body = 1000, events(FINAL)
        assert [delta.text for delta in await collect(backend, question)] == ["x"]
        assert service.connections == 1


# Client certificates --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def tls_server(**context: Any) -> AsyncIterator[tuple[str, RawServer]]:
    raw = RawServer(http(events(FINAL)))
    async with listening(raw.serve, server_context(**context)) as port:
        yield f"https://127.0.0.1:{port}/api", raw


@pytest.mark.parametrize("apart", [False, True])
async def test_a_client_certificate_is_shown(
    make_ffm: Any, question: BackendRequest, collect: Any, tmp_path: Path, apart: bool
) -> None:
    begin = CLIENT.read_text().index("-----BEGIN PRIVATE KEY")
    files = {"client_cert": str(CLIENT)}
    if apart:
        (tmp_path / "cert.pem").write_text(CLIENT.read_text()[:begin])
        (tmp_path / "key.pem").write_text(CLIENT.read_text()[begin:])
        files = {"client_cert": str(tmp_path / "cert.pem"), "client_key": str(tmp_path / "key.pem")}
    async with tls_server(client=CLIENT) as (url, raw):
        assert await collect(make_ffm(url, ca_file=str(CA), **files), question)
        with pytest.raises(BackendError) as caught:
            await collect(make_ffm(url, ca_file=str(CA)), question)
        assert caught.value.kind in (ErrorKind.UNREACHABLE, ErrorKind.PROTOCOL)  # TLS 1.3 refuses after the handshake
        with pytest.raises(BackendError):
            await collect(make_ffm(url, ca_file=str(CA), client_cert=str(CERTIFICATE)), question)
        assert len(raw.requests) == 1


@pytest.mark.parametrize(
    ("cert", "key", "why"),
    [("missing.pem", "", "No such file"), ("empty.pem", "", "no certificate"), (str(CLIENT), "empty.pem", "no certi")],
)
async def test_client_certificates_that_cannot_be_used_are_named(
    make_ffm: Any, tmp_path: Path, cert: str, key: str, why: str
) -> None:
    (tmp_path / "empty.pem").write_text("nothing")
    files = {"client_cert": str(tmp_path / cert), "client_key": str(tmp_path / key) if key else ""}
    with pytest.raises(BackendError, match=rf"^backends\.work\.client_cert and client_key, .*{why}") as caught:
        await make_ffm("https://127.0.0.1:9/api", **files).prepare()
    assert caught.value.kind is ErrorKind.SETTINGS
    assert "BEGIN" not in caught.value.message


# The environment ------------------------------------------------------------------------------------------------------


async def test_certificates_of_the_environment(
    make_ffm: Any, question: BackendRequest, collect: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CA))
    async with tls_server() as (url, _):
        assert await collect(make_ffm(url), question)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
        with pytest.raises(BackendError, match=r"^SSL_CERT_FILE, .*missing\.pem, cannot be used: No such") as caught:
            await collect(make_ffm(url), question)
        assert caught.value.kind is ErrorKind.SETTINGS
        assert await collect(make_ffm(url, ca_file=str(CA)), question), "settings win"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_forwards(
    make_ffm: Any,
    question: BackendRequest,
    collect: Any,
    service: FfmService,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    async with proxy_server() as proxy:
        monkeypatch.setenv(variable, proxy.url)
        backend = make_ffm(f"http://service.invalid:{service.port}/api")
        assert "".join(delta.text for delta in await collect(backend, question)) == "return a + b"
        assert proxy.lines == [f"POST http://service.invalid:{service.port}/api/models/text_infilling"]


async def test_https_goes_through_a_tunnel_in_which_http_2_is_spoken(
    make_ffm: Any, question: BackendRequest, collect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy_server() as proxy, h2_service(events(PART), answered=1) as service:
        service.body = events(FINAL)
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        backend = make_ffm(f"https://localhost:{service.port}/api", ca_file=str(CA))
        # Loopback is never asked for through the environment's proxies; a configured one is used for all.
        await collect(backend, question)
        assert proxy.lines == []
        service.answered = 2
        backend = make_ffm(f"https://localhost:{service.port}/api", ca_file=str(CA), proxy=proxy.url)
        await collect(backend, question)
        assert proxy.lines == [f"CONNECT localhost:{service.port}"]
        assert b"test-key" not in proxy.heads[0]
        service.came.clear()
        task = asyncio.create_task(collect(backend, question))
        await service.came.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await service.taken_back.wait()
        assert (service.reset, service.connections) == ([8], 2)


async def test_hosts_in_no_proxy_are_asked_directly(
    make_ffm: Any, question: BackendRequest, collect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy_server() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "other.example,service.invalid")
        with pytest.raises(BackendError) as caught:
            await collect(make_ffm("http://service.invalid/api", timeout_s=20), question)
        assert caught.value.kind in (ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT)  # there is no such host
        assert proxy.lines == []


async def test_a_proxy_that_wants_a_login(
    make_ffm: Any, question: BackendRequest, collect: Any, service: FfmService, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://service.invalid:{service.port}/api"
    async with proxy_server("ann:secret-word") as proxy:
        for setting in ({}, {"proxy": proxy.with_login("ann:wrong-word")}):
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            with pytest.raises(BackendError, match=r"407.*login: set proxy to") as caught:
                await collect(make_ffm(url, **setting), question)
            assert caught.value.kind is ErrorKind.UNREACHABLE
            assert "wrong-word" not in caught.value.message
        assert service.log == []
        monkeypatch.setenv("HTTP_PROXY", proxy.with_login("ann:secret-word"))
        assert await collect(make_ffm(url), question)
        assert len(service.log) == 1


# Reuse ----------------------------------------------------------------------------------------------------------------


class Forgetful:
    """Answers the first `answers` requests of each connection; at the next one it closes it without a word."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        self.connections = 0
        self.requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for number in range(self.answers + 1):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
            self.requests += 1
            if number < self.answers:
                answer = http(events(FINAL), length=True).replace(b"connection: close\r\n", b"")
                writer.write(answer)
                await writer.drain()


@asynccontextmanager
async def forgetful(answers: int) -> AsyncIterator[tuple[str, Forgetful]]:
    service = Forgetful(answers)
    async with listening(service.serve) as port:
        yield f"http://127.0.0.1:{port}/api", service


async def test_a_dead_connection_that_was_kept_is_replaced_at_once(
    make_ffm: Any, question: BackendRequest, collect: Any
) -> None:
    async with forgetful(1) as (url, service):
        backend = make_ffm(url)
        for _ in range(3):
            assert [delta.text for delta in await collect(backend, question)] == ["x"]
            await drained(backend)
        assert (service.connections, service.requests) == (3, 5)


async def test_a_new_one_that_dies_is_not(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with forgetful(0) as (url, service):
        with pytest.raises(BackendError) as caught:
            await collect(make_ffm(url), question)
        assert caught.value.kind is ErrorKind.PROTOCOL
        assert service.requests == 1


async def test_once_only(make_ffm: Any, question: BackendRequest, collect: Any) -> None:
    async with forgetful(1) as (url, service):
        backend = make_ffm(url)
        await collect(backend, question)
        await drained(backend)
        service.answers = 0
        with pytest.raises(BackendError) as caught:
            await collect(backend, question)
        assert caught.value.kind is ErrorKind.PROTOCOL
        assert (service.connections, service.requests) == (2, 3)


async def drained(backend: Any) -> None:
    """Wait until the connection of the last answer can be used again."""
    while backend._http._draining:
        await asyncio.wait(backend._http._draining)


async def test_few_connections_are_kept(
    make_ffm: Any, question: BackendRequest, collect: Any, service: FfmService
) -> None:
    backend = make_ffm(service.url)
    ports = []
    for _ in range(2):
        await asyncio.gather(*(collect(backend, question) for _ in range(MOST_CONNECTIONS + 5)))
        await drained(backend)
        ports.append({seen.port for seen in service.log})
        service.reset()
    assert min(map(len, ports)) > MOST_IDLE_CONNECTIONS, "they ran side by side"
    assert len(ports[0] & ports[1]) <= MOST_IDLE_CONNECTIONS
