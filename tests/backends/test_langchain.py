"""The LangChain class over a real backend and FFM's loopback service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, cast

import pytest

from backends.base import BackendError, ErrorKind
from tests.backends.contract import kind_of, kinds
from tests.services.ffm import Answer, FfmService

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from pydantic import SecretStr

from backends.langchain import Held, MidfillLLM

KEY = "test-key"


@pytest.fixture(scope="module")
def running() -> Iterator[FfmService]:
    with FfmService(key=KEY) as service:
        yield service


@pytest.fixture
def service(running: FfmService) -> FfmService:
    running.reset(Answer(deltas=("return ", "a", " + b")))
    return running


@pytest.fixture
async def llm(service: FfmService) -> AsyncIterator[MidfillLLM]:
    made = MidfillLLM(base_url=service.url, model="qwen2.5-coder-7b-32k", ffm_api_key=SecretStr(KEY), max_new_tokens=43)
    yield made
    await made.aclose()
    made.close()


def body(service: FfmService) -> dict[str, Any]:
    return dict(service.log[-1].body)


def test_invoke_continues(llm: MidfillLLM, service: FfmService) -> None:
    assert llm.invoke("def add(a, b):\n    ") == "return a + b"
    assert service.log[-1].path.endswith("/models/generate")
    sent = body(service)
    assert sent["inputs"] == "def add(a, b):\n    "
    parameters = {"max_new_tokens": 43, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "frequence_penalty": 1.0}
    assert sent["parameters"] == parameters


def test_invoke_infills_where_the_marker_is(llm: MidfillLLM, service: FfmService) -> None:
    assert llm.invoke("def add(a, b):\n    <FILL_ME>\n\nadd(1, 2)\n") == "return a + b"
    assert service.log[-1].path.endswith("/models/text_infilling")
    assert body(service)["inputs"] == "def add(a, b):\n    <FILL_ME>\n\nadd(1, 2)\n"


def test_two_markers_are_refused_before_anything_is_sent(llm: MidfillLLM, service: FfmService) -> None:
    with pytest.raises(BackendError, match="more than once"):
        llm.invoke("<FILL_ME><FILL_ME>")
    assert service.log == []


def test_usage_is_in_the_result(llm: MidfillLLM) -> None:
    result = llm.generate(["a", "b"])
    assert [one[0].text for one in result.generations] == ["return a + b", "return a + b"]
    usage = (result.generations[0][0].generation_info or {})["token_usage"]
    assert usage["prompt_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    output = result.llm_output or {}
    assert output["token_usage"]["total_tokens"] == 2 * usage["total_tokens"]
    assert output["model_name"] == "qwen2.5-coder-7b-32k"


def test_stream_gives_parts_as_they_come(llm: MidfillLLM, service: FfmService) -> None:
    service.reset(Answer(hold_after=1))
    parts = llm.stream("x")
    assert next(parts) == "return "
    service.release()
    assert "".join(parts) == "a + b"


async def test_async_and_batch(llm: MidfillLLM) -> None:
    assert await llm.ainvoke("x") == "return a + b"
    assert [part async for part in llm.astream("x")] == ["return ", "a", " + b"]
    assert await llm.abatch(["x", "y"]) == ["return a + b"] * 2
    # A sync call beside a running loop has a loop of its own.
    assert await asyncio.to_thread(llm.invoke, "x") == "return a + b"
    assert llm.invoke("x") == "return a + b"


async def test_closing_an_async_stream_closes_the_connection(llm: MidfillLLM, service: FfmService) -> None:
    service.reset(Answer(hold_after=1))
    parts = cast(AsyncGenerator[str, None], llm.astream("x"))
    assert await anext(parts) == "return "
    await parts.aclose()
    await service.until(disconnected=1)


def test_stop_of_the_call_and_of_the_object(llm: MidfillLLM, service: FfmService) -> None:
    assert llm.invoke("x", stop=[" + "]) == "return a"
    assert body(service)["parameters"]["stop_sequences"] == [" + "]
    llm.stop = ["a"]
    assert llm.invoke("x") == "return "


def test_no_temperature_and_as_many_tokens_as_possible(service: FfmService, llm: MidfillLLM) -> None:
    """As FFM's own wrapper takes them; what is sent is what the service documents."""
    assert llm.invoke("x", temperature=None, max_new_tokens=-1) == "return a + b"
    sent = body(service)["parameters"]
    assert (sent["temperature"], sent["max_new_tokens"]) == (1.0, 2048)
    for wrong in (0, -2, 1.5):
        with pytest.raises(ValueError, match="max_new_tokens"):
            MidfillLLM(max_new_tokens=cast(int, wrong))


def test_the_services_own_parameters_win(service: FfmService, llm: MidfillLLM) -> None:
    llm.model_kwargs = {"top_k": 9, "temperature": 0.25, "max_new_tokens": 5}
    llm.invoke("x", temperature=0.5)
    sent = body(service)["parameters"]
    assert (sent["top_k"], sent["temperature"], sent["max_new_tokens"]) == (9, 0.25, 5)


def test_other_kinds_are_told_what_was_set_in_their_own_names() -> None:
    kind = kind_of("llama-server")
    with kind.service(key=KEY) as other:
        given: dict[str, Any] = {"kind": "llama-server", "base_url": other.url, "ffm_api_key": SecretStr(KEY)}
        for more in ({}, {"top_k": 7, "frequence_penalty": 1.2}):
            llm = MidfillLLM(**{**given, **more})
            llm.invoke("x")
            llm.close()
        plain, told = (seen.body for seen in other.log if seen.method == "POST")
    assert not plain.keys() & {"top_k", "top_p", "repeat_penalty"}
    assert (told["top_k"], told["repeat_penalty"]) == (7, 1.2)
    assert not told.keys() & {"top_p", "frequence_penalty"}


def test_options_of_one_call(llm: MidfillLLM, service: FfmService) -> None:
    assert llm.invoke("x", temperature=0.5, top_k=7) == "return a + b"
    assert (body(service)["parameters"]["temperature"], body(service)["parameters"]["top_k"]) == (0.5, 7)
    llm.invoke("x")
    assert (body(service)["parameters"]["temperature"], body(service)["parameters"]["top_k"]) == (1.0, 50)
    assert len({seen.port for seen in service.log}) == 1  # the same connection


def test_options_of_one_call_that_are_wrong(llm: MidfillLLM, service: FfmService) -> None:
    for options in ({"max_new_tokens": 0}, {"temperature": -1}, {"top_k": "many"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            llm.invoke("x", **cast(dict[str, Any], options))
    assert service.log == []
    assert llm.invoke("x", ffm_api_key=KEY) == "return a + b"


def test_an_option_that_is_no_field_goes_to_the_service(llm: MidfillLLM) -> None:
    with pytest.raises(BackendError, match="seed: not allowed"):  # this service knows none
        llm.invoke("x", seed=7)


def test_a_refused_key_is_told_and_hidden(service: FfmService) -> None:
    llm = MidfillLLM(base_url=service.url, model="qwen2.5-coder-7b-32k", ffm_api_key=SecretStr("wrong-canary"))
    with pytest.raises(BackendError) as caught:
        llm.invoke("x")
    llm.close()
    assert caught.value.kind is ErrorKind.AUTH
    assert "ffm_api_key" in caught.value.message
    assert "wrong-canary" not in caught.value.message + repr(llm) + str(llm)


@pytest.mark.parametrize("cut", range(8))
def test_a_stop_split_over_deltas(cut: int) -> None:
    text, held = "a\n\nb c"[:cut], Held(["\n\n", "c"])
    first, met = held.feed(text, last=False)
    rest, met_later = ("", False) if met else held.feed("a\n\nb c"[cut:], last=True)
    assert (first + rest, met or met_later) == ("a", True)


def test_what_only_looks_like_a_stop_is_given_in_the_end() -> None:
    held = Held(["\n\n"])
    assert held.feed("a\n", last=False) == ("a", False)
    assert held.feed("", last=True) == ("\n", False)


@pytest.mark.parametrize("infills", [True, False])
@pytest.mark.parametrize("name", kinds())
def test_every_kind_continues(name: str, infills: bool) -> None:
    kind = kind_of(name)
    with kind.service(key=KEY, script=[Answer(deltas=("return ", "a + b"))]) as service:
        service.infills = infills  # qianfan: if not, the model chats only
        llm = MidfillLLM(kind=name, base_url=service.url, model=kind.model, ffm_api_key=SecretStr(KEY))
        try:
            assert llm.invoke("def add(a, b):\n    ") == "return a + b"
        finally:
            llm.close()


def test_a_model_that_does_not_infill_says_what_to_do(service: FfmService, llm: MidfillLLM) -> None:
    service.infills = False
    try:
        with pytest.raises(BackendError, match="does not infill"):
            llm.invoke("a <FILL_ME> b")
        assert llm.invoke("a") == "return a + b"
    finally:
        service.infills = True
