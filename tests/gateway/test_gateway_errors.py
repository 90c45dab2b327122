"""What FFM's routes refuse, and what every API tells of a backend that fails. No guard is around the backend here."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from backends.base import SilentObserver
from backends.ffm import FfmBackend
from backends.guard import Guard
from backends.settings import BackendSettings
from lsp_server.gateway import endpoint
from tests.gateway.gateway_process import MODEL, in_process
from tests.services.ffm import Answer, FfmService

INPUTS = "x = <FILL_ME>\n"
INFILL, GENERATE, CODE, OPENAI = (
    "/models/text_infilling",
    "/models/generate",
    "/v1/code/completions",
    "/v1/completions",
)


@pytest.fixture
async def asking(backend: FfmBackend) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        in_process([backend], ping_s=0.02) as (url, _),
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
    ):
        yield client


async def ffm(client: httpx.AsyncClient, **body: Any) -> tuple[int, Any]:
    response = await client.post(INFILL, json={"model": MODEL, "inputs": INPUTS, **body})
    return response.status_code, response.json()["detail"]


# --- requests


async def test_the_marker_must_stand_there_once(asking: httpx.AsyncClient, own_service: FfmService) -> None:
    assert await ffm(asking, inputs="none") == (400, "inputs must hold exactly one <FILL_ME>, found 0")
    assert await ffm(asking, inputs=INPUTS * 2) == (400, "inputs must hold exactly one <FILL_ME>, found 2")
    status, _ = await ffm(asking, inputs=INPUTS * 2, stream=True)
    assert (status, own_service.log) == (400, [])
    response = await asking.post(GENERATE, json={"model": MODEL, "inputs": INPUTS * 2})  # there it is text
    assert response.status_code == 200


@pytest.mark.parametrize("path", [INFILL, GENERATE])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_new_tokens", 0),
        ("max_new_tokens", -2),
        ("max_new_tokens", 1.5),
        ("temperature", 0),
        ("temperature", -1),
        ("temperature", "0.5"),
        ("top_p", 0),
        ("top_p", 1.01),
        ("top_k", 0),
        ("top_k", 101),
        ("frequence_penalty", 0),
        ("frequence_penalty", True),
        ("stop_sequences", "x" * 300),
        ("stop", [1]),
    ],
)
def test_parameters_out_of_range(client: httpx.Client, path: str, name: str, value: Any) -> None:
    response = client.post(path, json={"model": MODEL, "inputs": INPUTS, "parameters": {name: value}})
    (problem,) = response.json()["detail"]
    assert (response.status_code, problem["loc"], problem["type"]) == (422, ["body", "parameters", name], "value_error")
    assert problem["msg"].startswith(f"{name}: must be ")


async def test_parameters_at_the_edges(asking: httpx.AsyncClient) -> None:
    edges = {"max_new_tokens": 1, "temperature": 1e-3, "top_p": 1, "top_k": 100, "frequence_penalty": 0.1, "seed": 1}
    response = await asking.post(INFILL, json={"model": MODEL, "inputs": INPUTS, "parameters": edges})
    assert response.status_code == 200


async def test_numbers_that_are_none(asking: httpx.AsyncClient) -> None:
    for number in ("NaN", "Infinity", "1e999"):
        body = f'{{"model": "{MODEL}", "inputs": "<FILL_ME>", "parameters": {{"temperature": {number}}}}}'
        assert (await asking.post(INFILL, content=body)).status_code == 422


@pytest.mark.parametrize("body", [{"model": 1}, {"inputs": None}, {"parameters": []}, {"stream": 1}])
def test_fields_of_a_wrong_type(client: httpx.Client, body: dict[str, Any]) -> None:
    response = client.post(INFILL, json={"model": MODEL, "inputs": INPUTS, **body})
    assert (response.status_code, response.json()["detail"][0]["loc"]) == (422, ["body", *body])


async def test_an_unknown_model(asking: httpx.AsyncClient, own_service: FfmService) -> None:
    status, detail = await ffm(asking, model="ffm-mixtral")
    assert (status, own_service.log) == (404, [])
    assert "'ffm-mixtral'" in detail


async def test_malformed_json(asking: httpx.AsyncClient) -> None:
    response = await asking.post(INFILL, content='{"model": ')
    assert response.status_code == 422
    assert response.json()["detail"][0]["type"] == "json_invalid"


# --- a model that does not infill


@pytest.fixture
async def llama(own_service: FfmService, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FfmBackend]:
    """A family without a form for a hole, at a service that says that the model does not infill."""
    monkeypatch.setenv("WORK_KEY", "test-key")
    own_service.infills = False
    settings = BackendSettings(kind="ffm", url=own_service.url, model="llama-3", key_env="WORK_KEY")
    backend = FfmBackend("work", settings, SilentObserver())
    yield backend
    await backend.aclose()


async def test_infill_unsupported_in_the_words_of_each_api(llama: FfmBackend, own_service: FfmService) -> None:
    async with in_process([llama]) as (url, _), httpx.AsyncClient(base_url=url, trust_env=False) as client:
        for stream in (False, True):
            response = await client.post(INFILL, json={"model": "llama-3", "inputs": INPUTS, "stream": stream})
            assert (response.status_code, response.json()) == (
                400,
                {"detail": "This model does not support infilling."},
            )
        body = {"model": "llama-3", "prompt": "a", "suffix": "b"}
        for path in (CODE, "/v1/code/prompt"):
            response = await client.post(path, json={**body, "mode": "infill"})
            assert (response.status_code, response.json()) == (
                500,
                {"detail": "This model does not support infill mode."},
            )
        response = await client.post(OPENAI, json=body)
        error = response.json()["error"]
        assert (response.status_code, error["param"]) == (400, "suffix")
        own_service.reset(Answer(deltas=("fine",)))
        response = await client.post(GENERATE, json={"model": "llama-3", "inputs": "a"})
        assert response.json()["generated_text"] == "fine"
        assert own_service.log[0].path.endswith(GENERATE)


# --- a backend that fails


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (Answer(status=401, detail="bad"), 502, "auth"),
        (Answer(status=402, detail="pay"), 502, "quota"),
        (Answer(status=429, detail="slow", headers={"Retry-After": "7"}), 429, "rate-limited"),
        (Answer(status=503, detail="busy"), 503, "overloaded"),
        (Answer(status=400, detail="wrong"), 400, "bad-request"),
        (Answer(status=400, detail="input exceeds the context length"), 400, "too long"),
        (Answer(final="none", deltas=()), 502, "truncated"),
    ],
)
async def test_failures_before_the_first_text(
    asking: httpx.AsyncClient, own_service: FfmService, answer: Answer, status: int, words: str
) -> None:
    own_service.reset(answer)
    for stream in (False, True):
        response = await asking.post(INFILL, json={"model": MODEL, "inputs": INPUTS, "stream": stream})
        assert response.status_code == status
        assert words in response.json()["detail"]
        assert "127.0.0.1" not in response.text  # nothing of what is behind the gateway
    response = await asking.post(OPENAI, json={"model": MODEL, "prompt": "a", "suffix": "b", "stream": True})
    assert (response.status_code, words in response.json()["error"]["message"]) == (status, True)
    if status in (429, 503):
        assert response.headers["retry-after"] == ("7" if status == 429 else "2")
    else:
        assert "retry-after" not in response.headers
    response = await asking.post(CODE, json={"model": MODEL, "prompt": "a"})
    assert (response.status_code, words in response.json()["detail"]) == (status, True)


async def test_failures_in_a_stream(asking: httpx.AsyncClient, own_service: FfmService) -> None:
    own_service.reset(Answer(deltas=("a", "b"), stream_error="out of memory at 10.0.0.7"))
    response = await asking.post(INFILL, json={"model": MODEL, "inputs": INPUTS, "stream": True})
    lines = [line for line in response.text.split("\r\n") if line.startswith("data: {")]
    records = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [record.get("generated_text") for record in records] == ["a", "b", None]
    assert records[-1] == {
        "status_code": 502,
        "error": "The model's backend failed (stream-error); the gateway's log tells more.",
    }
    response = await asking.post(OPENAI, json={"model": MODEL, "prompt": "a", "suffix": "b", "stream": True})
    *_, error, done = [block for block in response.text.split("\n\n") if block.startswith("data: ")]
    assert done == "data: [DONE]"
    assert json.loads(error.removeprefix("data: "))["error"]["type"] == "server_error"


async def test_a_backend_that_is_left_alone(backend: FfmBackend, own_service: FfmService) -> None:
    own_service.reset(Answer(status=401, detail="bad"))
    guarded = Guard(backend, BackendSettings(kind="ffm"), SilentObserver(), now=lambda: 0.0)
    async with in_process([guarded]) as (url, _), httpx.AsyncClient(base_url=url, trust_env=False) as client:
        body = {"model": MODEL, "inputs": INPUTS}
        assert (await client.post(INFILL, json=body)).status_code == 502
        response = await client.post(INFILL, json=body)
        assert (response.status_code, response.headers["retry-after"]) == (503, "2")
        assert "breaker-open" in response.json()["detail"]
    assert len(own_service.log) == 1


async def test_a_stream_that_is_slow_to_begin_has_its_head_and_then_its_error(
    asking: httpx.AsyncClient, own_service: FfmService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "HEAD_S", 0.01)
    own_service.reset(Answer(deltas=("a",), hold_after=0, stream_error="out of memory"))
    body = {"model": MODEL, "inputs": INPUTS, "stream": True}
    async with asking.stream("POST", INFILL, json=body) as response:
        assert response.status_code == 200
        lines = response.aiter_lines()
        assert await anext(lines) == "event: ping"
        own_service.release()
        data = [line async for line in lines if line.startswith("data: {")]
    assert '"generated_text": "a"' in data[0]
    assert '"status_code": 502' in data[1]


# --- keep-alives


async def test_pings_as_each_api_has_them(asking: httpx.AsyncClient, own_service: FfmService) -> None:
    own_service.reset(Answer(deltas=("a", "b"), hold_after=1))

    async def until(path: str, mark: str, body: dict[str, Any]) -> str:
        text = ""
        async with asking.stream("POST", path, json={"model": MODEL, "stream": True, **body}) as response:
            async for part in response.aiter_text():
                text += part
                if mark in text:
                    return text
        raise AssertionError(text)

    text = await until(INFILL, "event: ping", {"inputs": INPUTS})
    assert '"generated_text": "a"' in text  # passed on at once, the rest is still to come
    text = await until(OPENAI, ": ping", {"prompt": "a", "suffix": "b"})
    assert "event:" not in text
