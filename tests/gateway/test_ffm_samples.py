"""FFM's documented clients against a running gateway: nothing is changed but the URL, the key and the model's name."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.ffm_clients import CURL, FfmClient
from tests.gateway.gateway_process import ENV, MODEL, GatewayProcess
from tests.services.ffm import Answer, FfmService

TEXT = 'def remove_non_ascii(s: str) -> str:\n    """ <FILL_ME>\n    return result\n'
DELTAS = ("Remove", ' non-ASCII. """\n', '    result = ""', "\n    for c in s:\n", "        result += c")
ANSWER = "".join(DELTAS)
WAYS = ["infill", "generate"]

needs_curl = pytest.mark.skipif(CURL is None, reason="there is no curl")


@pytest.fixture
def ffm(gateway: GatewayProcess) -> FfmClient:
    return FfmClient(gateway.url, ENV["GATEWAY_KEY"], MODEL)


@pytest.fixture
def generate(ffm: FfmClient) -> FfmClient:
    ffm.generate = True
    return ffm


def test_infilling_whole(service: FfmService, ffm: FfmClient) -> None:
    service.reset(Answer(deltas=DELTAS))
    prefix, suffix = TEXT.split("<FILL_ME>")
    assert prefix + ffm.whole(TEXT) + suffix == prefix + ANSWER + suffix
    sent = service.log[0].body
    assert sent["inputs"] == TEXT
    given = {"max_new_tokens": 43, "temperature": 0.1, "top_k": 50, "top_p": 1.0, "frequence_penalty": 1.0}
    assert sent["parameters"].items() >= given.items()


def test_infilling_streamed(service: FfmService, ffm: FfmClient) -> None:
    service.reset(Answer(deltas=DELTAS, finish_reason="length"))
    texts, last = ffm.streamed(TEXT)
    assert texts == list(DELTAS)
    assert last["generated_text"] == DELTAS[-1]
    assert last["finish_reason"] == "length"
    assert (last["prompt_tokens"], last["generated_tokens"], last["total_tokens"]) == (21, 5, 26)
    assert last["total_time_taken"].endswith(" sec")


def test_generate_whole(service: FfmService, generate: FfmClient) -> None:
    service.reset(Answer(deltas=("玉", "山", "😀")))
    assert generate.whole("台灣最高峰是") == "玉山😀"
    assert service.log[0].path.endswith("/models/generate")
    assert service.log[0].body["inputs"] == "台灣最高峰是"  # continued, not infilled


def test_generate_streamed(service: FfmService, generate: FfmClient) -> None:
    service.reset(Answer(deltas=("玉", "山"), finish_reason="length"))
    texts, last = generate.streamed("台灣最高峰是")
    assert (texts, last["finish_reason"], last["generated_tokens"]) == (["玉", "山"], "length", 2)


@needs_curl
@pytest.mark.parametrize("way", WAYS)
def test_curl_whole(service: FfmService, ffm: FfmClient, way: str) -> None:
    service.reset(Answer(deltas=DELTAS))
    ffm.generate = way == "generate"
    record = json.loads(ffm.curl(TEXT if way == "infill" else "def f():\n"))
    assert list(record) == [
        "generated_text",
        "function_call",
        "details",
        "total_time_taken",
        "prompt_tokens",
        "generated_tokens",
        "total_tokens",
        "finish_reason",
    ]
    assert record["generated_text"] == ANSWER
    assert (record["function_call"], record["details"], record["finish_reason"]) == (None, None, "stop")


@needs_curl
@pytest.mark.parametrize("way", WAYS)
def test_curl_streamed(service: FfmService, ffm: FfmClient, way: str) -> None:
    service.reset(Answer(deltas=DELTAS))
    ffm.generate = way == "generate"
    printed = ffm.curl(TEXT if way == "infill" else "def f():\n", stream=True)
    lines = [line for line in printed.replace("\r\n", "\n").split("\n") if line]
    assert all(line.startswith('data: {"generated_text": "') for line in lines)
    records = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [record["generated_text"] for record in records] == list(DELTAS)
    assert [record["finish_reason"] for record in records] == [None] * 4 + ["stop"]
    assert {record["total_tokens"] for record in records[:-1]} == {0}


def test_the_langchain_wrapper(service: FfmService, client: httpx.Client) -> None:
    """It sends null for what is not set, `stop` in place of `stop_sequences`, and UTF-8 without escapes."""
    service.reset(Answer(deltas=("是", "玉山。", "\n問", "：")))
    parameters: dict[str, Any] = {"temperature": None, "max_new_tokens": -1, "top_p": 1, "frequence_penalty": 1}
    body = {"parameters": {**parameters, "top_k": 50, "stop": ["\n問："]}, "inputs": "最高的山", "model": MODEL}
    encoded = json.dumps(body, ensure_ascii=False).encode()
    record = client.post("/models/generate", content=encoded).json()
    assert (record["generated_text"], record["finish_reason"]) == ("是玉山。", "stop")
    assert record.get("detail") is None
    sent = service.log[0].body["parameters"]
    assert sent["max_new_tokens"] == 400  # the gateway's own limit
    assert sent["stop_sequences"][0] == "\n問："


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        (("TOTAL = 1", "<|endo", "ftext|>", " more"), "TOTAL = 1"),
        (("<T>(x: T)", " <|endof", " text|>"), "<T>(x: T) <|endof text|>"),
        (("  indented\n", "\n"), "  indented\n\n"),
        ((r're.sub(r"\1\n", s)',), r're.sub(r"\1\n", s)'),
    ],
)
def test_terminators_are_cut_exactly_and_nothing_else(
    service: FfmService, ffm: FfmClient, deltas: tuple[str, ...], text: str
) -> None:
    service.reset(Answer(deltas=deltas))
    assert ffm.whole(TEXT) == text
    service.reset(Answer(deltas=deltas))
    assert "".join(ffm.streamed(TEXT)[0]) == text


def test_special_tokens_of_the_user_are_made_harmless_and_mended(service: FfmService, ffm: FfmClient) -> None:
    service.reset(Answer(deltas=('EOS = "<', "\u200b|endoftext|", '>"')))
    assert ffm.whole('PAD = "<|fim_pad|>"\n<FILL_ME>') == 'EOS = "<|endoftext|>"'
    assert service.log[0].body["inputs"].startswith('PAD = "<\u200b|fim_pad|>"\n')


def test_line_ends_stay_as_they_are(service: FfmService, ffm: FfmClient) -> None:
    service.reset(Answer(deltas=("a\n", "b\r", "\nc")))
    assert ffm.whole("x\r\n<FILL_ME>\r\n") == "a\r\nb\r\nc"
    assert service.log[0].body["inputs"] == "x\n<FILL_ME>\n"


def test_an_alias_stands_for_the_model(service: FfmService, ffm: FfmClient) -> None:
    ffm.model = "team-model"
    assert ffm.whole(TEXT) == "return a + b"
    assert service.log[0].body["model"] == MODEL
