"""Who may ask, how much, and that nobody's leaving keeps anything busy."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from backends._http import MOST_CONNECTIONS
from backends.ffm import FfmBackend
from backends.keys import Key
from lsp_server.gateway.desk import Desk
from lsp_server.gateway.settings import GatewaySettings
from lsp_server.settings import Settings
from tests.gateway.gateway_process import ENV, MODEL, GatewayProcess, in_process, work
from tests.lsp_server.commandline import midfill
from tests.services.ffm import Answer, FfmService

INFILL, OPENAI, CODE = "/models/text_infilling", "/v1/completions", "/v1/code/completions"
BODY: dict[str, Any] = {"model": MODEL, "inputs": "x = <FILL_ME>\n", "prompt": "x = ", "stream": False}
SMALL = Settings(gateway=GatewaySettings(running=1, waiting=1, max_body_kb=1))


# --- keys


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": ""},
        {"x-api-key": "gateway-secre"},
        {"authorization": "gateway-secret"},
        {"authorization": "Basic gateway-secret"},
        {"authorization": "Bearer wrong"},
        {"x-api-key": "wrong", "authorization": "Bearer gateway-secret"},
        {"x-api-key": "é"},
    ],
)
def test_a_wrong_key_is_refused_by_each_api(gateway: GatewayProcess, headers: dict[str, str]) -> None:
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    with httpx.Client(base_url=gateway.url, headers=encoded, trust_env=False) as client:
        responses = [client.post(path, json=BODY) for path in (INFILL, CODE, "/v1/code/prompt", OPENAI)]
        responses.append(client.get("/v1/models"))
        assert [response.status_code for response in responses] == [401] * 5
        assert responses[0].json() == {"detail": "Invalid API key."}
        assert responses[1].json() == {"detail": "Could not validate credentials"}
        assert responses[1].headers["www-authenticate"] == "Bearer"
        assert responses[3].json()["error"]["code"] == "invalid_api_key"
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("headers", [{"X-API-Key": "gateway-secret"}, {"Authorization": "bearer gateway-secret"}])
def test_a_key_is_taken_in_either_header(gateway: GatewayProcess, headers: dict[str, str]) -> None:
    with httpx.Client(base_url=gateway.url, headers=headers, trust_env=False) as client:
        for path in (INFILL, CODE, OPENAI):
            assert client.post(path, json=BODY).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_host_that_others_reach_needs_a_key(tmp_path: Path, host: str) -> None:
    (tmp_path / "work.toml").write_text(work("http://127.0.0.1:9"))
    if host == "::" and not socket.has_ipv6:
        pytest.skip("no IPv6")
    done = midfill("gateway", "--host", host, "--port", "0", "--config", "work.toml", cwd=tmp_path, env=ENV)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a key is needed" in done.stderr
    assert "--key-env NAME" in done.stderr


def test_with_a_key_it_listens_there(tmp_path: Path, own_service: FfmService) -> None:
    arguments = ("--host", "0.0.0.0", "--key-env", "GATEWAY_KEY")
    with GatewayProcess(tmp_path, work(own_service.url), *arguments) as gateway:
        url = gateway.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.post(url + INFILL, json=BODY, trust_env=False).status_code == 401
        headers = {"x-api-key": "gateway-secret", "origin": "http://example.org", "host": "gateway.example"}
        assert httpx.post(url + INFILL, json=BODY, headers=headers, trust_env=False).status_code == 200


def test_an_empty_key_is_none(tmp_path: Path) -> None:
    (tmp_path / "work.toml").write_text(work("http://127.0.0.1:9"))
    done = midfill("gateway", "--config", "work.toml", "--key-env", "NOT_SET", cwd=tmp_path, env=ENV)
    assert done.returncode == 2
    assert "environment variable NOT_SET is not set" in done.stderr


async def test_without_a_key_web_pages_are_refused(backend: FfmBackend) -> None:
    async with in_process([backend]) as (url, _), httpx.AsyncClient(base_url=url, trust_env=False) as client:
        for headers in ({"origin": "https://example.org"}, {"origin": "null"}, {"host": "rebound.example:8012"}):
            assert (await client.post(INFILL, json=BODY, headers=headers)).status_code == 403
        for host in ("localhost:8012", "127.0.0.1", "[::1]:8012", "[::1]"):
            assert (await client.post(INFILL, json=BODY, headers={"host": host})).status_code == 200
    async with in_process([backend], key=Key("k", "test")) as (url, _):
        headers = {"origin": "https://example.org", "x-api-key": "k"}
        response = await asyncio.to_thread(httpx.post, url + INFILL, json=BODY, headers=headers, trust_env=False)
        assert response.status_code == 200


# --- sizes


async def test_a_body_that_is_too_large(backend: FfmBackend, own_service: FfmService) -> None:
    fits = {**BODY, "inputs": "<FILL_ME>" + "x" * 800}
    large = {**BODY, "inputs": "<FILL_ME>" + "x" * 1000}

    async def in_chunks() -> Any:
        for _ in range(50):
            yield b"x" * 100

    async with (
        in_process([backend], settings=SMALL) as (url, _),
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        assert (await client.post(INFILL, json=fits)).status_code == 200
        for content in ({"json": large}, {"content": in_chunks()}):
            response = await client.post(INFILL, **content)
            assert (response.status_code, response.json()) == (
                413,
                {"detail": "The request is larger than 1024 bytes."},
            )
        response = await client.post(OPENAI, json=large)
        assert (response.status_code, response.json()["error"]["type"]) == (413, "invalid_request_error")
        assert (await client.post(CODE, json=large)).status_code == 413
    assert len(own_service.log) == 1


async def test_a_body_that_is_far_too_large_is_not_read(backend: FfmBackend) -> None:
    """The answer comes while the client has sent nothing of it, or waits to be told to go on."""
    async with in_process([backend], settings=SMALL) as (url, _):
        for head in ("Content-Length: 99999999999", "Content-Length: 2000\r\nExpect: 100-continue"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
            writer.write(f"POST {INFILL} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 413 ")
            writer.close()
            await writer.wait_closed()


async def test_the_answer_is_no_longer_than_the_gateway_allows(backend: FfmBackend, own_service: FfmService) -> None:
    settings = Settings(gateway=GatewaySettings(max_tokens=10))
    async with in_process([backend], settings=settings) as (url, _), httpx.AsyncClient(trust_env=False) as client:
        for asked in (5, 10, 11, 10**6):
            await client.post(url + INFILL, json={**BODY, "parameters": {"max_new_tokens": asked}})
    assert [seen.body["parameters"]["max_new_tokens"] for seen in own_service.log] == [5, 10, 10, 10]


# --- waiting


async def inside(desk: Desk, number: int) -> None:
    async with asyncio.timeout(20):
        while desk.turnstile.inside != number:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)


async def test_more_than_can_wait_are_sent_away(backend: FfmBackend, own_service: FfmService) -> None:
    own_service.reset(Answer(deltas=("a", "b"), hold_after=1))
    async with (
        in_process([backend], settings=SMALL) as (url, desk),
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
    ):
        first = asyncio.ensure_future(client.post(INFILL, json=BODY))
        await own_service.until(generating=1)
        second = asyncio.ensure_future(client.post(INFILL, json=BODY))
        await inside(desk, 2)
        for path in (INFILL, OPENAI, CODE):
            for stream in (False, True):
                response = await client.post(path, json={**BODY, "stream": stream})
                assert (response.status_code, response.headers["retry-after"]) == (503, "1")
                assert ("error" if path == OPENAI else "detail") in response.json()
        assert len(own_service.log) == 1  # the second one waits
        own_service.release()
        assert [(await task).status_code for task in (first, second)] == [200, 200]
        assert (await client.post(INFILL, json=BODY)).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_as_many_run_at_a_time_as_are_set(tmp_path: Path, own_service: FfmService, stream: bool) -> None:
    """More than a backend of an editor has connections for."""
    number = MOST_CONNECTIONS + 10
    own_service.reset(Answer(deltas=("a", "b"), hold_after=1))

    async def ask_all(url: str) -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as client:
            asking = [
                asyncio.ensure_future(client.post(INFILL, json={**BODY, "stream": stream})) for _ in range(number)
            ]
            await own_service.until(generating=number)
            own_service.release()
            return await asyncio.gather(*asking)

    with GatewayProcess(tmp_path, work(own_service.url, f"[gateway]\nrunning = {number}\n")) as gateway:
        responses = asyncio.run(ask_all(gateway.url))
    assert [response.status_code for response in responses] == [200] * number
    assert len(own_service.log) == number


# --- clients that leave


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", [INFILL, OPENAI])
def test_a_client_that_leaves_closes_the_connection_behind(
    service: FfmService, client: httpx.Client, path: str, stream: bool
) -> None:
    service.reset(Answer(deltas=("a", "b"), hold_after=1))
    with pytest.raises(httpx.ReadTimeout):
        leave(client, path, stream)
    asyncio.run(service.until(disconnected=1))
    assert service.log[0].answered is None
    service.reset()
    assert client.post(path, json=BODY).status_code == 200


def leave(client: httpx.Client, path: str, stream: bool) -> None:
    """Read until nothing more comes, then close."""
    patience = httpx.Timeout(20, read=1)
    with client.stream("POST", path, json={**BODY, "stream": stream}, timeout=patience) as response:
        response.read()


async def test_one_that_leaves_before_the_first_text(backend: FfmBackend, own_service: FfmService) -> None:
    own_service.reset(Answer(hold_head=True))
    async with (
        in_process([backend], settings=SMALL) as (url, desk),
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
    ):
        asking = asyncio.ensure_future(client.post(INFILL, json={**BODY, "stream": True}))
        await own_service.until(begun=1)
        waiting = asyncio.ensure_future(client.post(INFILL, json=BODY))
        await inside(desk, 2)
        waiting.cancel()
        await inside(desk, 1)
        asking.cancel()
        await own_service.until(disconnected=1)
        await inside(desk, 0)
        await asyncio.wait({asking, waiting})
    assert len(own_service.log) == 1  # whoever left while waiting was never asked for


# --- the end


@pytest.fixture
def held(tmp_path: Path, own_service: FfmService) -> Iterator[GatewayProcess]:
    own_service.reset(Answer(deltas=("a", "b"), hold_after=1))
    with GatewayProcess(tmp_path, work(own_service.url)) as gateway:
        yield gateway


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_lets_answers_end(held: GatewayProcess, own_service: FfmService) -> None:
    with httpx.stream(
        "POST", held.url + INFILL, json={**BODY, "stream": True}, timeout=60, trust_env=False
    ) as response:
        parts = response.iter_text()
        text = next(parts)
        held.signal(signal.SIGTERM)
        own_service.release()
        text += "".join(parts)
    assert '"finish_reason": "stop"' in text
    assert held.end(signal.SIGTERM) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_second_signal_does_not_wait(held: GatewayProcess, own_service: FfmService) -> None:
    with httpx.stream(
        "POST", held.url + INFILL, json={**BODY, "stream": True}, timeout=60, trust_env=False
    ) as response:
        next(response.iter_text())
        held.signal(signal.SIGINT)
        held.signal(signal.SIGINT)
        assert held.end(signal.SIGINT) == 0
