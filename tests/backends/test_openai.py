"""The openai backend: how it asks, how it finds out how to ask, what services say when they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from backends import registry
from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    ChatPrompt,
    ErrorKind,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
)
from backends.settings import BackendSettings
from completion.clock import SystemClock
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import TraceLog
from completion.types import Completion, CompletionContext, DocumentSnapshot, Outcome, PlainText, Trigger
from tests.backends.contract import Notices
from tests.services.common import Answer
from tests.services.openai import CHAT, MODEL, OpenAIService

INFILL = BackendRequest(InfillPrompt("def add(a, b):\n    return ", "\n"), 32, stop=("1", "2", "3", "", "4", "5"))
RAW = BackendRequest(RawPrompt((Piece("<|fim_prefix|>", special=True), Piece("x = "))), 32, 0.2)
TALK = BackendRequest(ChatPrompt((Message("system", "s"), Message("user", "u"))), 32)
REPLY = Answer(deltas=("Here is the code:\n\n```py", "thon\n    return a + b\n", "```\nIt adds."))
TEXT = "def add(a, b):\n    return "


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIService]:
    with OpenAIService() as service:
        yield service


@pytest.fixture
def service(running: OpenAIService) -> OpenAIService:
    """As its class says, whatever the test before made of it."""
    for name in ("suffix", "routes_there", "chat_only", "tells_usage", "flat", "missing"):
        running.__dict__.pop(name, None)
    running.infills = True
    running.reset()
    return running


@pytest.fixture
async def make(
    service: OpenAIService, monkeypatch: pytest.MonkeyPatch, notices: Notices
) -> AsyncIterator[Callable[..., Any]]:
    monkeypatch.setenv("MIDFILL_TEST_KEY", "test-key")
    built: list[Backend] = []

    def build(**settings: Any) -> Backend:
        defaults = {"kind": "openai", "url": service.url, "model": MODEL, "key_env": "MIDFILL_TEST_KEY"}
        built.append(registry.create("work", BackendSettings(**(defaults | settings)), notices))
        return built[-1]

    yield build
    for backend in built:
        await backend.aclose()


async def complete(backend: Backend) -> Outcome:
    """What the whole engine makes of it."""
    log = TraceLog(None, clock=SystemClock())
    engine = Engine(
        [backend], EngineSettings(completion=CompletionSettings(debounce_ms=0, speculate="never")), traces=log
    )
    document = DocumentSnapshot("file:///a.py", "python", 1, PlainText(TEXT + "\n"), "a.py")
    context = CompletionContext(document, len(TEXT), Trigger.INVOKED)
    return await engine.complete(context, log.begin("1", document.uri))


def paths(service: OpenAIService) -> list[str]:
    return [seen.path.removeprefix("/v1") for seen in service.log]


def prompts(service: OpenAIService) -> list[Any]:
    """What was asked in each request after the question."""
    bodies = [seen.body for seen in service.log if seen.body.get("max_tokens") != 1]
    return [body.get("messages") or (body["prompt"], body.get("suffix")) for body in bodies]


async def test_the_three_ways_to_ask(service: OpenAIService, make: Any, collect: Any) -> None:
    backend = make(parameters={"top_p": 0.9})
    for request in (INFILL, RAW, TALK):
        assert "".join(delta.text for delta in await collect(backend, request)) == "return a + b"
    common = {"model": MODEL, "max_tokens": 32, "stream": True, "top_p": 0.9}
    infill, raw, talk = (seen.body for seen in service.log)
    text = {"prompt": TEXT, "suffix": "\n", "temperature": 0.0, "stop": ["1", "2", "3", "4"]}
    assert infill == {**common, **text}
    assert raw == {**common, "prompt": "<|fim_prefix|>x = ", "temperature": 0.2}
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    assert talk == {**common, "messages": messages, "temperature": 0.0}
    assert paths(service) == ["/completions", "/completions", "/chat/completions"]


async def test_an_empty_suffix_is_not_sent_as_one(service: OpenAIService, make: Any, collect: Any) -> None:
    await collect(make(), BackendRequest(InfillPrompt("x", ""), 8))
    assert service.log[0].body["suffix"] == "\n"


async def test_the_newer_name_of_max_tokens(service: OpenAIService, make: Any, collect: Any) -> None:
    await collect(make(parameters={"max_completion_tokens": 64}), INFILL)
    assert "max_tokens" not in service.log[0].body
    assert service.log[0].body["max_completion_tokens"] == 64


async def test_whole_answers(service: OpenAIService, make: Any, collect: Any) -> None:
    for request in (INFILL, TALK):
        (delta,) = await collect(make(parameters={"stream": False}), request)
        assert (delta.text, delta.usage.prompt_tokens) == ("return a + b", 21)


async def test_a_service_that_reads_the_suffix(service: OpenAIService, make: Any) -> None:
    backend = make()
    outcomes = [await complete(backend) for _ in range(2)]
    assert all(isinstance(outcome, Completion) for outcome in outcomes)
    assert prompts(service) == [(TEXT, "\n")] * 2
    assert len(service.log) == 3  # one question for both
    question = service.log[0].body
    assert (question["max_tokens"], question["stream"]) == (1, False)


@pytest.mark.parametrize("suffix", ["refused", "ignored"])
async def test_a_service_that_does_not(service: OpenAIService, make: Any, notices: Notices, suffix: str) -> None:
    service.suffix = suffix
    assert isinstance(await complete(make()), Completion)
    assert prompts(service) == [(f"<|fim_prefix|>{TEXT}<|fim_suffix|>\n<|fim_middle|>", None)]
    assert len(service.log) == 2


@pytest.mark.parametrize("suffix", ["refused", "ignored"])
async def test_a_model_of_no_known_family_is_asked_in_a_chat(service: OpenAIService, make: Any, suffix: str) -> None:
    service.suffix = suffix
    service.reset(REPLY)
    outcome = await complete(make(model="gemini-pro"))
    assert isinstance(outcome, Completion)
    assert outcome.text == "a + b"
    assert paths(service) == ["/completions", "/chat/completions"]


async def test_a_service_that_does_not_count(service: OpenAIService, make: Any) -> None:
    service.tells_usage = False
    await complete(make())
    assert prompts(service)[0][0].startswith("<|fim_prefix|>")  # right in either case
    await complete(make(model="gemini-pro"))
    assert prompts(service)[1] == (TEXT, "\n")


@pytest.mark.parametrize(
    "missing",
    [
        {"detail": "Not Found"},
        {"error": {"message": "Invalid URL (POST /v1/completions)", "type": "invalid_request_error"}},
        {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}},
        {"detail": "404 page not found"},
        {"detail": ""},
    ],
)
async def test_without_completions_there_is_the_chat(service: OpenAIService, make: Any, missing: Any) -> None:
    service.routes_there = frozenset({CHAT})
    service.missing = missing
    service.reset(REPLY)
    backend = make()
    outcome = await complete(backend)
    assert isinstance(outcome, Completion)
    assert outcome.text == "a + b"
    assert backend.capabilities.shapes == {Shape.CHAT}
    assert paths(service) == ["/completions", "/chat/completions"]


async def test_a_chat_model_of_openai(service: OpenAIService, make: Any) -> None:
    service.chat_only = frozenset({"gpt-4o-mini"})
    service.reset(REPLY)
    assert isinstance(await complete(make(model="gpt-4o-mini")), Completion)
    assert paths(service) == ["/completions", "/chat/completions"]


async def test_shapes_shrink_while_answers_are_wanted(service: OpenAIService, make: Any) -> None:
    service.suffix = "refused"
    service.reset(Answer(status=404, detail="This model is not a completion model"), REPLY)
    backend = make()
    outcome = await complete(backend)
    assert isinstance(outcome, Completion)
    assert outcome.text == "a + b"
    assert paths(service) == ["/completions", "/completions", "/chat/completions"]


async def test_a_model_without_a_chat_template(service: OpenAIService, make: Any) -> None:
    service.suffix = "refused"
    refusal = (
        "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template"
    )
    service.reset(Answer(status=400, detail=refusal), Answer())
    backend = make(model="base-model")
    assert isinstance(await complete(backend), Completion)
    assert backend.capabilities.shapes == {Shape.RAW}
    assert prompts(service)[1] == (TEXT, None)


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("status", [400, 404])
async def test_a_missing_model_or_another_refusal_changes_nothing(
    service: OpenAIService, make: Any, collect: Any, status: int, flat: bool
) -> None:
    service.flat = flat
    service.reset(Answer(status=status, detail="The model `x` does not exist."))
    backend = make()
    with pytest.raises(BackendError, match="does not exist") as caught:
        await collect(backend, INFILL)
    assert caught.value.kind is (ErrorKind.MODEL_NOT_FOUND if status == 404 else ErrorKind.BAD_REQUEST)
    assert backend.capabilities.shapes == set(Shape)


async def test_a_wrong_url_does_not_stick(service: OpenAIService, make: Any) -> None:
    service.routes_there = frozenset()
    backend = make()
    outcome = await complete(backend)
    assert "Check url" in outcome.detail  # type: ignore[union-attr]
    assert backend.capabilities.shapes == set(Shape)
    service.routes_there = OpenAIService.routes_there
    assert isinstance(await complete(backend), Completion)


async def test_too_long_a_prompt_is_not_about_the_suffix(service: OpenAIService, make: Any, collect: Any) -> None:
    said = "This model's maximum context length is 4097 tokens; prompt and suffix hold 5000 tokens"
    service.reset(Answer(status=400, detail=said))
    with pytest.raises(BackendError) as caught:
        await collect(backend := make(), INFILL)
    assert caught.value.kind is ErrorKind.CONTEXT_TOO_LONG
    assert Shape.INFILL in backend.capabilities.shapes


@pytest.mark.parametrize(("mode", "shape"), [("suffix", Shape.INFILL), ("template", Shape.RAW), ("chat", Shape.CHAT)])
async def test_a_mode_that_is_set(service: OpenAIService, make: Any, collect: Any, mode: str, shape: Shape) -> None:
    service.suffix = "ignored"
    backend = make(mode=mode)
    assert backend.capabilities.shapes == {shape}
    await backend.prepare()
    assert service.log == []
    service.routes_there = frozenset()
    with pytest.raises(BackendError, match=f'mode = "{mode}" is set') as caught:
        await collect(backend, {Shape.INFILL: INFILL, Shape.RAW: RAW, Shape.CHAT: TALK}[shape])
    assert caught.value.kind is ErrorKind.MODEL_NOT_FOUND
    assert backend.capabilities.shapes == {shape}


@pytest.mark.parametrize("settings", [{"mode": "code"}, {"model": ""}])
def test_settings_that_do_not_fit(make: Any, settings: dict[str, str]) -> None:
    with pytest.raises(BackendError) as caught:
        make(**settings)
    assert caught.value.kind is ErrorKind.SETTINGS


async def test_vllm_says_done_after_an_error(service: OpenAIService, make: Any, collect: Any) -> None:
    service.reset(Answer(stream_error="engine died"))
    with pytest.raises(BackendError, match="engine died") as caught:
        await collect(make(), INFILL)
    assert caught.value.kind is ErrorKind.STREAM_ERROR


async def test_what_the_content_filter_cut_is_no_answer(service: OpenAIService, make: Any, collect: Any) -> None:
    service.reset(Answer(finish_reason="content_filter"))
    with pytest.raises(BackendError, match="content filter"):
        await collect(make(), INFILL)


async def test_quota_and_rate_are_told_apart(service: OpenAIService, make: Any, collect: Any) -> None:
    quota = {
        "error": {"message": "You exceeded your quota", "type": "insufficient_quota", "code": "insufficient_quota"}
    }
    for detail, kind in ((quota, ErrorKind.QUOTA), ("Rate limit reached", ErrorKind.RATE_LIMITED)):
        service.reset(Answer(status=429, detail=detail))
        with pytest.raises(BackendError) as caught:
            await collect(make(), INFILL)
        assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "suffix: the service reads"),
        ({"suffix": "ignored"}, "template, for unknown families chat"),
        ({"suffix": "refused"}, "template, for unknown families chat"),
        ({"tells_usage": False}, "does not tell whether it reads"),
        ({"routes_there": frozenset({CHAT})}, "chat: the service does not complete"),
    ],
)
async def test_doctor_says_how_the_service_is_asked(
    service: OpenAIService, make: Any, how: dict[str, Any], told: str
) -> None:
    for name, value in how.items():
        setattr(service, name, value)
    checks = {check.name: check for check in (await make().probe()).checks}
    assert told in checks["mode"].detail
    assert all(check.ok for check in checks.values())
    assert checks["latency"].detail


async def test_doctor_with_a_wrong_key(service: OpenAIService, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDFILL_TEST_KEY", "wrong")
    checks = {check.name: check for check in (await make().probe()).checks}
    assert not checks["request"].ok
    assert "mode" not in checks  # nothing is known of it


@pytest.mark.parametrize(
    ("headers", "pause_s"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s"}, 90.0),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h0m0.5s"}, 3600.5),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "120ms"}, 0.12),
        ({"x-ratelimit-remaining-requests": "5", "x-ratelimit-reset-requests": "1m30s"}, None),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "9s", "retry-after": "2"}, 2.0),
    ],
)
async def test_when_a_limit_is_lifted(
    service: OpenAIService, make: Any, collect: Any, headers: dict[str, str], pause_s: float | None
) -> None:
    service.reset(Answer(status=429, detail="Rate limit reached", headers=headers))
    with pytest.raises(BackendError) as caught:
        await collect(make(), INFILL)
    assert caught.value.retry_after_s == (pytest.approx(pause_s) if pause_s else None)
