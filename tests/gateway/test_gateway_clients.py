"""Clients that are slow, odd or hostile, byte by byte on the socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from backends.ffm import FfmBackend
from lsp_server.gateway import limits, serving
from lsp_server.gateway.settings import GatewaySettings
from lsp_server.settings import Settings
from tests.gateway.gateway_process import MODEL, GatewayProcess, in_process
from tests.services.ffm import Answer, FfmService

GENERATE, INFILL, OPENAI = "/models/generate", "/models/text_infilling", "/v1/completions"
BODY: dict[str, Any] = {"model": MODEL, "inputs": "x = <FILL_ME>\n", "prompt": "x = "}
KEY = b"X-API-KEY: gateway-secret\r\n"


def request(method: str, target: str, body: bytes = b"", head: bytes = b"Connection: close\r\n") -> bytes:
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n".encode() + head + length + b"\r\n" + body


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.wait({asyncio.ensure_future(writer.wait_closed())})


async def sent(url: str, *parts: bytes) -> bytes:
    """The answer, to its end."""
    async with connected(url) as (reader, writer), asyncio.timeout(30):
        for part in parts:
            writer.write(part)
            await writer.drain()
        return await reader.read()


def test_paths_that_are_not_there(client: httpx.Client, gateway: GatewayProcess) -> None:
    bodies = json.dumps(BODY).encode()
    hosts = b"Host: evil.example\r\nConnection: close\r\n" + KEY
    for target in (
        f"{GENERATE}/",
        f"/{GENERATE}",
        f"/models/..{GENERATE}",
        "/../../secret-file",
        "/%2e%2e/secret-file",
        "/%ff%fe",
        f"http://evil.example{GENERATE}",
        "*",
    ):
        head = hosts.partition(b"\r\n")[2]
        answer = asyncio.run(sent(gateway.url, request("POST", target, bodies, head)))
        assert answer.startswith(b"HTTP/1.1 404 "), target
        assert b"evil" not in answer
    assert "evil" not in gateway.log
    assert "secret-file" not in gateway.log


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "TRACE", "CONNECT", "X" * 5000])
def test_other_methods(gateway: GatewayProcess, method: str) -> None:
    answer = asyncio.run(sent(gateway.url, request(method, GENERATE)))
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"allow: POST\r\n" in answer.lower().replace(b"post", b"POST")
    assert (b"detail" in answer) is (method != "HEAD")
    assert "XXXX" not in gateway.log


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 300,  # TLS
        b"GET /health\r\n\r\n",
        b"POST /models/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /models/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"GET /a\x01b HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000,
    ],
)
def test_what_is_not_http(gateway: GatewayProcess, data: bytes) -> None:
    try:
        answer = asyncio.run(sent(gateway.url, data))
    except ConnectionError:  # closed on bytes that were not read
        answer = b"HTTP/1.1 400 "
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert httpx.get(f"{gateway.url}/health", trust_env=False).status_code == 200


def test_a_key_in_the_query_is_none_and_not_logged(gateway: GatewayProcess) -> None:
    url = f"{gateway.url}{GENERATE}?x-api-key=gateway-secret&key=query-canary"
    assert httpx.post(url, json=BODY, trust_env=False).status_code == 401
    assert "query-canary" not in gateway.log


def test_requests_sent_before_the_answers_came(gateway: GatewayProcess, service: FfmService) -> None:
    first = json.dumps({**BODY, "stream": True}).encode()
    second = json.dumps(BODY).encode()
    answer = asyncio.run(
        sent(
            gateway.url,
            request("POST", INFILL, first, KEY) + request("POST", OPENAI, second, KEY) + request("GET", "/health"),
        )
    )
    assert answer.count(b"HTTP/1.1 200 ") == 3
    stream, _, rest = answer.partition(b'"finish_reason": "stop"')
    assert b"text_completion" not in stream
    assert rest.index(b"text_completion") < rest.index(b'{"status": "ok"}')
    assert len(service.log) == 2


@pytest.mark.parametrize(
    "content",
    [
        json.dumps(BODY).encode("utf-16"),
        b"\xef\xbb\xbf" + json.dumps(BODY).encode(),
        json.dumps(BODY).replace("x = <", "\\ud83d x = \\udc00\\u0000<").encode(),
    ],
    ids=["UTF-16", "BOM", "halves of pairs"],
)
def test_other_encodings(client: httpx.Client, service: FfmService, content: bytes) -> None:
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded", "\xff"):
        response = client.post(INFILL, content=content, headers=[(b"content-type", kind.encode("latin-1"))])
        assert (response.status_code, response.json()["generated_text"]) == (200, "return a + b")
        service.log[-1].text.encode()  # no halves of pairs


@pytest.mark.parametrize(
    "content", [b"model=a&inputs=b", b'{"model": "\xe9"}', b"\x1f\x8b\x08", b"null", b"\x00" * 100]
)
def test_bodies_that_are_something_else(client: httpx.Client, content: bytes) -> None:
    for path, status in ((INFILL, 422), (OPENAI, 400), ("/v1/code/prompt", 400)):
        assert client.post(path, content=content).status_code == status


async def test_a_head_that_does_not_come(backend: FfmBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateway closes the connection, also of a client that goes on and on, and answers others."""
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    async with in_process([backend]) as (url, _), asyncio.timeout(60):
        assert await sent(url) == b""
        assert await sent(url, b"POST /models/generate HTTP/1.1\r\nHos") == b""
        async with connected(url) as (reader, writer):  # of the second request
            writer.write(request("GET", "/health", head=b""))
            assert b'{"status": "ok"}' in await reader.readuntil(b"}")
            ending = asyncio.ensure_future(reader.read())
            while not ending.done():
                writer.write(b"G")
                await asyncio.wait({ending}, timeout=0.02)
            assert await ending == b""
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("path", [INFILL, OPENAI, "/v1/code/prompt"])
async def test_a_body_that_does_not_come(backend: FfmBackend, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(limits, "BODY_S", 0.2)
    async with in_process([backend]) as (url, desk):
        answer = await sent(url, request("POST", path, b'{"model": "', b"")[:-3])
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b"connection: close" in answer.lower()
        assert b"did not come within 0.2 s" in answer
        assert desk.turnstile.inside == 0


async def test_a_request_may_take_longer_than_its_head(
    backend: FfmBackend, own_service: FfmService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "HEAD_S", 0.2)
    own_service.reset(Answer(deltas=("a", "b"), hold_after=1))
    body = json.dumps(BODY).encode()
    async with in_process([backend]) as (url, _), connected(url) as (reader, writer), asyncio.timeout(60):
        writer.write(request("POST", INFILL, body)[: -len(body)])
        await asyncio.sleep(0.5)  # longer than a head may take
        writer.write(body)
        await own_service.until(generating=1)
        await asyncio.sleep(0.5)
        own_service.release()
        assert b'"generated_text": "ab"' in await reader.read()


async def test_fifty_streams_at_a_time(backend: FfmBackend, own_service: FfmService) -> None:
    """All begin before any ends; half of the clients leave, the others get all of it; nothing is left behind."""
    backend.at_once(50)
    own_service.reset(Answer(deltas=tuple(f"{n} " for n in range(40)), hold_after=1))
    settings = Settings(gateway=GatewaySettings(running=50))
    whole = "".join(f"{n} " for n in range(40))

    async def streamed(client: httpx.AsyncClient, *, leaves: bool) -> str:
        text = ""
        async with client.stream("POST", INFILL, json={**BODY, "stream": True}) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    text += json.loads(line.removeprefix("data: "))["generated_text"]
                    if leaves:
                        break
        return text

    async with (
        in_process([backend], settings=settings) as (url, desk),
        httpx.AsyncClient(
            base_url=url, timeout=60, limits=httpx.Limits(max_connections=None), trust_env=False
        ) as client,
    ):
        asking = [asyncio.ensure_future(streamed(client, leaves=number % 2 == 0)) for number in range(50)]
        await own_service.until(generating=50, disconnected=25)
        own_service.release()
        texts = await asyncio.gather(*asking)
        assert sorted(set(texts)) == ["0 ", whole]
        assert texts.count(whole) == 25
        async with asyncio.timeout(20):
            while desk.turnstile.inside:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
