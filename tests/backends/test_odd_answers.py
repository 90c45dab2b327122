"""Answers that are almost right: what can be read of them is read, what cannot is told in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends._ffm_records import Answer
from backends._openai_wire import ChoiceReader, count_of
from backends._pairs import Pairs
from backends.base import BackendError, ErrorKind
from backends.llama_server import LlamaServerBackend
from backends.ollama import OllamaBackend
from backends.openai import OpenAIBackend
from backends.settings import BackendSettings
from backends.tgi import TgiBackend
from backends.xinference import XinferenceBackend
from tests.backends.asking import answer, infill
from tests.backends.contract import Notices
from tests.services.raw import events, http, raw_server


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask an `openai` backend that gets these bytes; its text, or the error."""
    monkeypatch.setenv("MIDFILL_TEST_KEY", "test-key")

    async def run(response: bytes) -> Any:
        async with raw_server(response) as raw:
            settings = BackendSettings("openai", raw.url, "m", key_env="MIDFILL_TEST_KEY", mode="suffix")
            backend = OpenAIBackend("work", settings, Notices())
            try:
                return "".join(delta.text for delta in await answer(backend, infill()))
            except BackendError as error:
                return error
            finally:
                await backend.aclose()

    return run


def part(text: str, finish: str | None = None, **more: Any) -> str:
    return json.dumps({"choices": [{"text": text, "finish_reason": finish, **more}]})


# Choices --------------------------------------------------------------------------------------------------------------


async def test_an_empty_reason_is_none(ask: Any) -> None:
    assert await ask(http(events(part("a", ""), part("b", ""), part("", "stop")))) == "ab"
    reader = Answer("")
    assert reader.feed({"generated_text": "a", "finish_reason": ""}, last=False).finish is None


async def test_the_parts_of_two_choices_do_not_mix(ask: Any) -> None:
    records = (part("B", index=1), part("A", index=0), part("b", "stop", index=1), part("a", "stop", index=0))
    assert await ask(http(events(*records))) == "Bb"
    both = {"choices": [{"index": 0, "text": "a"}, {"index": 1, "text": "b"}]}
    reader = ChoiceReader()
    assert reader.feed({"choices": both["choices"][::-1]}, last=False).text == "b"
    assert reader.feed(both, last=False).text == "b"


@pytest.mark.parametrize("first", [0, 1, None, "0", [0]])
def test_a_choice_that_does_not_repeat_its_number_goes_on(first: Any) -> None:
    reader = ChoiceReader()
    assert reader.feed({"choices": [{"index": first, "text": "a"}]}, last=False).text == "a"
    assert reader.feed({"choices": [{"text": "b"}]}, last=False).text == "b"
    assert reader.feed({"choices": [{"index": first, "text": "c", "finish_reason": "length"}]}, last=False).finish


# Text -----------------------------------------------------------------------------------------------------------------


async def test_halves_of_pairs_are_joined_or_replaced(ask: Any) -> None:
    records = ('{"choices": [{"text": "a\\ud83d"}]}', '{"choices": [{"text": "\\ude00b\\ud83d"}]}', part("", "stop"))
    assert await ask(http(events(*records))) == "a\U0001f600b\ufffd"
    assert await ask(http(b'{"choices": [{"text": "\\ude00a"}]}', content_type="application/json")) == "\ufffda"


@given(parts=st.lists(st.text(st.sampled_from("a\u7389\U0001f600\ud83d\ude00\udbff"), max_size=4)))
def test_pairs_are_the_same_however_the_text_is_split(parts: list[str]) -> None:
    pairs = Pairs()
    found = "".join([*(pairs.feed(text) for text in parts), pairs.feed("", last=True)])
    assert found == "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_text_without_halves_does_not_wait() -> None:
    pairs = Pairs()
    assert [pairs.feed(text) for text in ("a", "\u7389", "\U0001f600", "")] == ["a", "\u7389", "\U0001f600", ""]


# Numbers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-1, 1 << 60, True, 1.0, "1", None, [1]])
def test_what_is_no_number_of_tokens(value: Any) -> None:
    assert count_of({"n": value}, "n") is None
    final = {"generated_text": "", "finish_reason": "stop", "generated_tokens": value}
    usage = Answer("").feed(final, last=False).usage
    assert usage is not None
    assert usage.generated_tokens is None


@pytest.mark.parametrize("value", [0, -1, "4096", None])
def test_a_context_of_nothing_is_not_known(value: Any) -> None:
    notices, url = Notices(), "http://127.0.0.1:9"
    server = LlamaServerBackend("work", BackendSettings("llama-server", url), notices)
    assert server.described({"default_generation_settings": {"n_ctx": value}})[1] is None
    assert TgiBackend("work", BackendSettings("tgi", url), notices).described({"max_total_tokens": value})[1] is None
    settings = BackendSettings("ollama", url, "m", parameters={"num_ctx": value})
    assert OllamaBackend("work", settings, notices).capabilities.context_tokens is None


# Errors ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, ErrorKind.AUTH, "environment variable MIDFILL_TEST_KEY"),
        (402, ErrorKind.QUOTA, "balance"),
        (429, ErrorKind.RATE_LIMITED, "asked again later"),
        (503, ErrorKind.OVERLOADED, "busy"),
        (500, ErrorKind.STREAM_ERROR, "boom"),
    ],
)
async def test_an_error_in_a_stream_means_what_its_status_does(
    ask: Any, status: int, kind: ErrorKind, says: str
) -> None:
    error = await ask(http(events(part("a"), json.dumps({"error": {"message": "boom", "code": status}}))))
    assert (error.kind, error.status) == (kind, status)
    assert says in error.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"detail": ["too bad", "so sad"]}', "HTTP 400: too bad; so sad."),
        (b'{"detail": [{"loc": 5, "msg": "no"}, 7]}', "HTTP 400: : no."),
        (b"plain words", "HTTP 400: plain words."),
        (b"\x00\x01\x02PNG", "HTTP 400."),
        (b"\xa4\xa4\xa4\xe5", "HTTP 400."),  # words in another encoding than UTF-8
    ],
)
async def test_the_words_of_an_error_are_shown_if_it_has_any(ask: Any, body: bytes, says: str) -> None:
    error = await ask(http(body, status="400 Bad Request", content_type="text/plain"))
    assert f"answered {says} mode = " in error.message


async def test_where_a_redirect_leads_is_shown_without_its_query(ask: Any) -> None:
    location = "location: https://user:pass@new.example/v2/x?token=secret\r\n"
    error = await ask(http(b"", status="301 Moved", headers=location, length=True))
    assert error.kind is ErrorKind.PROTOCOL
    assert "HTTP 301, which leads to https://new.example/v2/x. Check url" in error.message


async def test_a_message_can_always_be_encoded(ask: Any) -> None:
    error = await ask(http(b'{"error": "a\\ud83d"}', status="400 Bad Request", content_type="application/json"))
    assert "HTTP 400: a\ufffd.".encode() in error.message.encode()


@pytest.mark.parametrize(
    ("body", "media", "says"),
    [
        (b"nothing", "application/json", "The service sent a record that is not JSON."),
        (b"{}", "application/json", "The service's answer has no choices."),
        (events("nothing"), "text/event-stream", "The service sent a record that is not JSON."),
        (events("{}"), "text/event-stream", "The service's answer has no choices."),
    ],
)
async def test_of_an_answer_that_makes_no_sense_it_is_said_where_it_came_from(
    ask: Any, body: bytes, media: str, says: str
) -> None:
    error = await ask(http(body, content_type=media))
    assert error.kind is ErrorKind.PROTOCOL
    assert error.message.endswith(f"/api/completions: {says}")


# Silence --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OpenAIBackend, XinferenceBackend])
async def test_a_service_that_says_nothing_is_waited_for_once(kind: type[OpenAIBackend]) -> None:
    async with raw_server(b"", ending="hold") as raw:
        backend = kind("work", BackendSettings("openai", raw.url, "m", timeout_s=0.2), Notices())
        with pytest.raises(BackendError) as caught:
            await backend.prepare()
        assert caught.value.kind is ErrorKind.TIMEOUT
        found = {check.name: check for check in (await backend.probe()).checks}
        assert "did not answer" in found["request"].detail
        await backend.aclose()
