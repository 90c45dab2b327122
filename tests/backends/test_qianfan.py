"""Version 2 of Qianfan against the loopback service, settings, embeddings and ranks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from backends.base import BackendError, BackendRequest, ErrorKind, Finish, InfillPrompt, Shape, Usage
from tests.backends.contract import Notices
from tests.backends.qianfan_desk import (
    APP,
    CHAT,
    CODER,
    IAM,
    INFILL,
    RAW,
    deltas_of,
    failure,
    paths,
    text_of,
)
from tests.services.qianfan import MODEL, V1, Answer, QianfanService
from tests.services.raw import events, http, raw_server

# V2 -------------------------------------------------------------------------------------------------------------------


async def test_v2_infills(qianfan: QianfanService, make_qianfan: Any) -> None:
    stops = ("\n\n", "", "x" * 21, "a", "b", "c", "d")
    request = BackendRequest(InfillPrompt("a = ", ""), max_tokens=32, temperature=0.0, stop=stops)
    backend = make_qianfan(url=f"{qianfan.url}/v2", app_id="app-1", parameters={"top_p": 0.5})
    assert backend.capabilities.shapes == {Shape.INFILL}
    assert await text_of(backend, request) == "return a + b"
    (seen,) = qianfan.log
    assert (seen.path, seen.query) == ("/v2/completions", "")
    assert (seen.headers["authorization"], seen.headers["appid"]) == ("Bearer test-key", "app-1")
    assert seen.body == {
        "model": MODEL,
        "prompt": "a = ",
        "suffix": "\n",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 32,
        "temperature": 0.01,
        "stop": ["\n\n", "a", "b", "c"],
        "top_p": 0.5,
    }


async def test_v2_counts_come_behind_the_reason(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(finish_reason="length"))
    deltas = await deltas_of(make_qianfan(), INFILL)
    assert [delta.finish for delta in deltas if delta.finish] == [Finish.LENGTH]
    assert deltas[-1].usage == Usage(21, None, 4)


async def test_v2_whole_answers(qianfan: QianfanService, make_qianfan: Any) -> None:
    deltas = await deltas_of(make_qianfan(parameters={"stream": False}), INFILL)
    assert [(delta.text, delta.finish, delta.usage) for delta in deltas] == [
        ("return a + b", Finish.STOP, Usage(21, None, 4))
    ]
    assert "stream_options" not in qianfan.log[0].body


@pytest.mark.parametrize(
    ("records", "finish"),
    [
        (['{"choices":[{"text":"x"}],"usage":{"prompt_tokens":1}}', "[DONE]"], Finish.STOP),
        (['{"choices":[{"text":"x","finish_reason":"length"}]}'], Finish.LENGTH),
    ],
)
async def test_v2_ends_with_done_or_with_a_reason(make_qianfan: Any, records: list[str], finish: Finish) -> None:
    async with raw_server(http(events(*records, line_end="\n"))) as raw:
        deltas = await deltas_of(make_qianfan(url=raw.url), INFILL)
    assert [delta.text for delta in deltas] == ["x", ""]
    assert deltas[-1].finish is finish


async def test_v2_takes_raw_and_chat_prompts(qianfan: QianfanService, make_qianfan: Any) -> None:
    backend = make_qianfan()
    assert await text_of(backend, RAW) == await text_of(backend, CHAT) == "return a + b"
    raw, chat = qianfan.log
    assert (raw.path, raw.body["prompt"]) == ("/v2/completions", "def add(a, b):\n")
    assert "suffix" not in raw.body
    assert (chat.path, len(chat.body["messages"])) == ("/v2/chat/completions", 2)


async def test_v2_a_model_that_does_not_infill_is_chatted_with(
    qianfan: QianfanService, make_qianfan: Any, notices: Notices
) -> None:
    qianfan.infills = False
    backend = make_qianfan()
    error = await failure(backend)
    assert error.kind is ErrorKind.INFILL_UNSUPPORTED
    assert backend.capabilities.shapes == {Shape.CHAT}
    assert await text_of(backend, CHAT) == await text_of(backend, RAW) == "return a + b"
    assert qianfan.log[-1].body["messages"] == [{"role": "user", "content": "def add(a, b):\n"}]
    assert (await failure(backend)).kind is ErrorKind.INFILL_UNSUPPORTED
    assert paths(qianfan) == ["/v2/completions", "/v2/chat/completions", "/v2/chat/completions"]
    assert [message for _, message in notices.notices if "chat model" in message]


async def test_v2_a_model_unknown_to_chat_too_is_not_found(qianfan: QianfanService, make_qianfan: Any) -> None:
    unknown = {"error": {"code": "invalid_model", "message": "no such model", "type": "invalid_request_error"}}
    qianfan.reset(Answer(status=401, detail=unknown))
    backend = make_qianfan()
    assert (await failure(backend)).kind is ErrorKind.INFILL_UNSUPPORTED
    assert (await failure(backend, CHAT)).kind is ErrorKind.MODEL_NOT_FOUND


@pytest.mark.parametrize(("mode", "shape"), [("chat", Shape.CHAT), ("template", Shape.RAW), ("suffix", Shape.INFILL)])
async def test_v2_mode(make_qianfan: Any, mode: str, shape: Shape) -> None:
    assert make_qianfan(mode=mode).capabilities.shapes == {shape}


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "malformed_json", ErrorKind.BAD_REQUEST),
        (400, "tokens_too_long", ErrorKind.CONTEXT_TOO_LONG),
        (400, "characters_too_long", ErrorKind.CONTEXT_TOO_LONG),
        (401, "access_denied", ErrorKind.AUTH),
        (401, "something_new", ErrorKind.AUTH),
        (429, "rpm_rate_limit_exceeded", ErrorKind.RATE_LIMITED),
        (429, "insufficient_quota", ErrorKind.QUOTA),
        (429, "tpd_something_new", ErrorKind.RATE_LIMITED),
        (500, "internal_error", ErrorKind.OVERLOADED),
    ],
)
async def test_v2_errors(qianfan: QianfanService, make_qianfan: Any, status: int, name: str, kind: ErrorKind) -> None:
    qianfan.reset(Answer(status=status, detail={"error": {"code": name, "message": "no luck"}}))
    error = await failure(make_qianfan())
    assert (error.kind, error.status) == (kind, status)
    assert "no luck" in error.message
    assert len(qianfan.log) == 1


async def test_v2_an_error_at_the_begin_of_a_stream_goes_by_its_name(
    qianfan: QianfanService, make_qianfan: Any
) -> None:
    limit = {"error": {"code": "tpm_rate_limit_exceeded", "message": "later"}}
    qianfan.reset(Answer(deltas=(), stream_error=limit), Answer(stream_error=limit))
    backend = make_qianfan()
    assert (await failure(backend)).kind is ErrorKind.RATE_LIMITED
    assert (await failure(backend)).kind is ErrorKind.STREAM_ERROR


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": ""}, "model is not set"),
        ({"model": "", "api": "v1"}, "or endpoint"),
        ({"endpoint": "x"}, 'api = "v1"'),
        ({"access_key_env": "A", "secret_key_env": "S", "key_env": "K"}, "not both"),
        ({"access_key_env": "A", "key_env": ""}, "without secret_key_env"),
        ({"secret_key_env": "S", "key_env": ""}, "without access_key_env"),
        ({"secret_key_env": "S", "key_env": "K"}, "without access_key_env"),
        ({"secret_key_env": "S", "key_env": "", "api": "v1"}, "or key_env"),
        ({"parameters": {"stream": "no"}}, "parameters.stream"),
        ({"mode": "code"}, "mode is 'code'"),
        ({"url": "ftp://x"}, "url"),
    ],
)
def test_settings_that_cannot_work(make_qianfan: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BackendError) as caught:
        make_qianfan(**settings)
    assert caught.value.kind is ErrorKind.SETTINGS
    assert caught.value.message.startswith("backends.work.")
    assert words in caught.value.message


def test_defaults(make_qianfan: Any) -> None:
    assert str(make_qianfan(url="").ask(INFILL).url) == "https://qianfan.baidubce.com/v2/completions"
    path = f"https://aip.baidubce.com{V1}/completions/codellama_7b_instruct"
    assert str(make_qianfan(url="", **CODER).ask(RAW).url) == path
    assert make_qianfan(url="").capabilities.remote
    prints = {
        make_qianfan().fingerprint,
        make_qianfan(**CODER).fingerprint,
        make_qianfan(**CODER | {"endpoint": "y"}).fingerprint,
    }
    assert len(prints) == 3


# Besides completions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "embeds", "ranks"),
    [
        ({}, "/v2/embeddings", "/v2/rerank"),
        (IAM, "/v2/embeddings", "/v2/rerank"),
        (IAM | CODER, f"{V1}/embeddings/embedding-v1", f"{V1}/reranker/bce_reranker_base"),
        (APP | CODER, f"{V1}/embeddings/embedding-v1", f"{V1}/reranker/bce_reranker_base"),
    ],
)
async def test_embeddings_and_ranks(
    qianfan: QianfanService, make_qianfan: Any, settings: dict[str, Any], embeds: str, ranks: str
) -> None:
    backend = make_qianfan(**settings)
    texts = ["x" * n for n in range(20)]
    vectors = await backend.embed(texts, workers=2)
    assert [vector[0] for vector in vectors] == [float(n) for n in range(20)]
    asked = [seen for seen in qianfan.log if seen.path == embeds]
    assert sorted(len(seen.body["input"]) for seen in asked) == [4, 16]
    qianfan.expire()
    assert await backend.rerank("read file", ["write", "read file", "file"]) == [0.0, 1.0, 0.5]
    assert qianfan.log[-1].path == ranks
    if not settings:
        assert [seen.body["model"] for seen in qianfan.log] == ["embedding-v1"] * 2 + ["bce-reranker-base"]


async def test_a_batch_that_fails_leaves_the_others(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(status=429, detail="slow down"), Answer())
    values = await make_qianfan().embed(["a"] * 18, workers=1)
    assert [type(value) for value in values] == [BackendError] * 16 + [tuple] * 2
    assert values[0].kind is ErrorKind.RATE_LIMITED


async def test_no_more_workers_than_asked_for(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(hold_head=True))
    task = asyncio.create_task(make_qianfan().embed(["a"] * 80, workers=2))
    await qianfan.until(generating=2)
    assert len(qianfan.log) == 2
    qianfan.release()
    assert len(await task) == 80
    assert len(qianfan.log) == 5


async def test_all_at_once_if_no_number_is_given(qianfan: QianfanService, make_qianfan: Any) -> None:
    qianfan.reset(Answer(hold_head=True))
    task = asyncio.create_task(make_qianfan().embed(["a"] * 80))
    await qianfan.until(generating=5)
    qianfan.release()
    assert len(await task) == 80


async def test_batches_of_nothing_and_wrong_numbers(qianfan: QianfanService, make_qianfan: Any) -> None:
    assert await make_qianfan().embed([]) == []
    with pytest.raises(ValueError, match="workers"):
        await make_qianfan().embed(["a"], workers=0)
    assert qianfan.log == []


@pytest.mark.parametrize(
    "body", ['{"data": []}', '{"data": [{"index": 0}]}', '{"data": [{"index": 0, "embedding": ["x"]}]}', "{}"]
)
async def test_embeddings_that_make_no_sense(make_qianfan: Any, body: str) -> None:
    async with raw_server(http(body.encode(), content_type="application/json")) as raw:
        (value,) = await make_qianfan(url=raw.url).embed(["a"])
    assert value.kind is ErrorKind.PROTOCOL
