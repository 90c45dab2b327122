"""Version 1 of Qianfan against the loopback service: what is asked and how, and what is made of it."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs

import pytest

from backends.base import BackendRequest, ErrorKind, Finish, Shape, Usage
from tests.backends.qianfan_desk import (
    APP,
    CHAT,
    CODER,
    IAM,
    RAW,
    SERVICES_PATH,
    deltas_of,
    failure,
    paths,
    text_of,
)
from tests.services.qianfan import V1, Answer, QianfanService
from tests.services.raw import events, http, raw_server

# V1 -------------------------------------------------------------------------------------------------------------------


async def test_v1_continues_text_with_a_signature(qianfan: QianfanService, make_qianfan: Any) -> None:
    request = BackendRequest(RAW.prompt, max_tokens=16, temperature=0.2, stop=("\n\n",))
    backend = make_qianfan(**(IAM | CODER), parameters={"penalty_score": 1.1}, headers={"X-Team": "a/b"})
    assert (backend.capabilities.shapes, backend.model) == ({Shape.RAW}, "codellama_7b_instruct")
    deltas = await deltas_of(backend, request)
    assert [delta.text for delta in deltas] == ["return ", "a", " +", " b"]
    assert (deltas[-1].finish, deltas[-1].usage) == (Finish.STOP, Usage(21, None, 4))
    (seen,) = qianfan.log
    assert (seen.path, seen.query) == (f"{V1}/completions/codellama_7b_instruct", "")
    assert not qianfan.signature_problem(seen)
    assert seen.body == {
        "prompt": "def add(a, b):\n",
        "stream": True,
        "temperature": 0.2,
        "stop": ["\n\n"],
        "penalty_score": 1.1,
    }


async def test_v1_configured_headers_are_signed_as_they_are_sent(qianfan: QianfanService, make_qianfan: Any) -> None:
    await deltas_of(make_qianfan(**(IAM | CODER), headers={"Content-Type": "application/json; charset=utf-8"}), RAW)
    assert qianfan.log[0].headers["content-type"] == "application/json; charset=utf-8"


async def test_v1_with_an_access_token(qianfan: QianfanService, make_qianfan: Any) -> None:
    assert await text_of(make_qianfan(**CODER), RAW) == "return a + b"
    (seen,) = qianfan.log
    assert parse_qs(seen.query) == {"access_token": ["test-key"]}
    assert "authorization" not in seen.headers


async def test_v1_chats(qianfan: QianfanService, make_qianfan: Any) -> None:
    backend = make_qianfan(api="v1", model="", endpoint=f"https://host{V1}/chat/ernie_speed")
    assert backend.capabilities.shapes == {Shape.CHAT}
    await deltas_of(backend, CHAT)
    await deltas_of(backend, RAW)
    assert [seen.body["messages"] for seen in qianfan.log] == [
        [{"role": "user", "content": "Be brief.\n\nFill."}],
        [{"role": "user", "content": "def add(a, b):\n"}],
    ]
    assert set(paths(qianfan)) == {f"{V1}/chat/ernie_speed"}


async def test_v1_a_completion_model_takes_chat_as_text(qianfan: QianfanService, make_qianfan: Any) -> None:
    await deltas_of(make_qianfan(**CODER), CHAT)
    assert qianfan.log[0].body["prompt"] == "Be brief.\n\nFill."


async def test_v1_does_not_infill(qianfan: QianfanService, make_qianfan: Any) -> None:
    assert (await failure(make_qianfan(**CODER))).kind is ErrorKind.INFILL_UNSUPPORTED
    assert qianfan.log == []


@pytest.mark.parametrize(
    ("model", "path", "shape"),
    [
        ("my-coder", "completions/x7k2_coder", Shape.RAW),
        ("My-Coder-Chat", "chat/x7k2_chat", Shape.CHAT),
    ],
)
async def test_v1_finds_a_model_by_its_name(
    qianfan: QianfanService, make_qianfan: Any, model: str, path: str, shape: Shape
) -> None:
    backend = make_qianfan(**IAM, api="v1", model=model)
    await asyncio.gather(backend.prepare(), backend.prepare())
    assert backend.capabilities.shapes == {shape}
    await deltas_of(backend, RAW)
    await deltas_of(make_qianfan(**IAM, api="v1", model=model), RAW)  # without `prepare`
    assert paths(qianfan) == [SERVICES_PATH, f"{V1}/{path}"] * 2


async def test_v1_knows_some_models_itself(qianfan: QianfanService, make_qianfan: Any) -> None:
    await deltas_of(make_qianfan(api="v1", model="CodeLlama-7b-Instruct"), RAW)
    assert paths(qianfan) == [f"{V1}/completions/codellama_7b_instruct"]


@pytest.mark.parametrize(
    ("settings", "kind", "word"),
    [
        (IAM, ErrorKind.MODEL_NOT_FOUND, "no model nobody"),
        ({}, ErrorKind.SETTINGS, "endpoint"),
        (APP, ErrorKind.SETTINGS, "endpoint"),
    ],
)
async def test_v1_a_model_that_is_not_found(
    make_qianfan: Any, settings: dict[str, Any], kind: ErrorKind, word: str
) -> None:
    error = await failure(make_qianfan(**(settings | {"api": "v1", "model": "nobody"})), RAW)
    assert error.kind is kind
    assert word in error.message


async def test_v1_an_embedding_model_does_not_continue(make_qianfan: Any) -> None:
    error = await failure(make_qianfan(**IAM, api="v1", model="Embedding-V1"), RAW)
    assert error.kind is ErrorKind.MODEL_NOT_FOUND


KINDS = {
    ErrorKind.OVERLOADED: (1, 2, 336000, 336100, 500000),
    ErrorKind.RATE_LIMITED: (4, 18, 336501, 336502),
    ErrorKind.QUOTA: (17, 19),
    ErrorKind.AUTH: (6, 13, 14, 15, 110, 111, 336004),
    ErrorKind.MODEL_NOT_FOUND: (3, 336005),
    ErrorKind.BAD_REQUEST: (100, 336001, 336002, 336003, 336101, 336104, 336105, 999),
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in KINDS.items() for code in codes])
async def test_v1_errors(qianfan: QianfanService, make_qianfan: Any, kind: ErrorKind, code: int) -> None:
    qianfan.reset(Answer(detail={"error_code": code, "error_msg": "no luck", "id": "as-1"}))
    error = await failure(make_qianfan(**CODER), RAW)
    assert (error.kind, error.status) == (kind, code)
    assert f"error {code}: no luck" in error.message
    assert len(qianfan.log) == 1


async def test_v1_too_long(qianfan: QianfanService, make_qianfan: Any) -> None:
    said = "the total length of the prompt exceeds the max length, prompt tokens too long"
    qianfan.reset(Answer(detail={"error_code": 336003, "error_msg": said}))
    assert (await failure(make_qianfan(**CODER), RAW)).kind is ErrorKind.CONTEXT_TOO_LONG


@pytest.mark.parametrize("final", ["normal", "bare"])
@pytest.mark.parametrize("split", [0, 1])
async def test_v1_errors_in_a_stream(qianfan: QianfanService, make_qianfan: Any, final: str, split: int) -> None:
    busy = {"error_code": 336100, "error_msg": "high load"}
    qianfan.reset(
        Answer(deltas=(), stream_error=busy, final=final, split=split),
        Answer(stream_error=busy, final=final, split=split),
    )
    backend = make_qianfan(**CODER)
    for kind in (ErrorKind.OVERLOADED, ErrorKind.STREAM_ERROR):
        error = await failure(backend, RAW)
        assert error.kind is kind
        assert "high load" in error.message


async def test_v1_a_bare_error_need_not_end_its_line(make_qianfan: Any) -> None:
    async with raw_server(http(b'data: {"result":"x","is_end":false}\n\n{"error_code":2,"error_msg":"gone"}')) as raw:
        error = await failure(make_qianfan(url=raw.url, **CODER), RAW)
    assert (error.kind, error.status) == (ErrorKind.STREAM_ERROR, 2)


async def test_v1_text_that_looks_like_a_bare_line_is_text(make_qianfan: Any) -> None:
    record = '{"result":"{\\n{","is_end":true}'
    pretty = '{\n"result":\n"y",\n"is_end":false}'
    for split in (0, 1):
        async with raw_server(http(events(pretty, record)), split=split) as raw:
            assert await text_of(make_qianfan(url=raw.url, **CODER), RAW) == "y{\n{"


async def test_v1_cut_answers(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(finish_reason="length"))
    for stream in (True, False):
        deltas = await deltas_of(make_qianfan(**CODER, parameters={"stream": stream}), RAW)
        assert deltas[-1].finish is Finish.LENGTH
