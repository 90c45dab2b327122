"""The tgi backend against its loopback service."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import BackendError, ErrorKind, Shape
from completion.types import Completion
from tests.backends.asking import answer, chat, infill, raw, suggestion, text
from tests.backends.contract import Bench
from tests.services.common import Answer

pytestmark = pytest.mark.parametrize("kind", ["tgi"], indirect=True)


async def test_there_is_no_infilling_and_nothing_is_sent_to_find_out(bench: Bench) -> None:
    assert bench.backend.capabilities.shapes == {Shape.RAW, Shape.CHAT}
    with pytest.raises(BackendError) as caught:
        await text(bench.backend, infill())
    assert caught.value.kind is ErrorKind.INFILL_UNSUPPORTED
    assert bench.service.log == []


async def test_the_prompt_has_the_form_of_the_models_family(bench: Bench) -> None:
    backend = bench.build(model="")
    await backend.prepare()
    assert (backend.model, backend.capabilities.context_tokens) == ("some/qwen2.5-coder-7b", 4096)
    outcome = await suggestion(backend, "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "return a + b"
    (seen,) = bench.service.log
    assert seen.path == "/generate_stream"
    assert "<|fim_suffix|>" in seen.body["inputs"]


@pytest.mark.parametrize(
    ("temperature", "parameters", "sent"),
    [
        (0.0, {}, {}),
        (0.5, {}, {"temperature": 0.5}),
        (0.0, {"top_p": 1}, {}),
        (0.0, {"top_p": 0.9, "top_k": 3}, {"top_p": 0.9, "top_k": 3}),
        (0.5, {"temperature": 0}, {}),
    ],
)
async def test_what_the_service_would_refuse_is_left_out(
    bench: Bench, temperature: float, parameters: dict[str, Any], sent: dict[str, Any]
) -> None:
    backend = bench.build(parameters=parameters)
    for request in (raw(temperature=temperature), chat(temperature=temperature)):
        assert await text(backend, request) == "return a + b"
    plain, chatted = (seen.body for seen in bench.service.log)
    assert plain["parameters"] == {"max_new_tokens": 32, "details": True, **sent}
    assert chatted.keys() - {"model", "messages", "stream", "max_tokens"} == sent.keys()


async def test_a_refusal_in_the_stream(bench: Bench) -> None:
    await bench.fails(ErrorKind.BAD_REQUEST, "strictly positive", backend=bench.build(parameters={"temperature": -1.0}))


async def test_at_most_four_stops(bench: Bench) -> None:
    stop = ("a", "", "b", "c", "d", "e")
    for request in (raw(stop=stop), chat(stop=stop)):
        await text(bench.backend, request)
    assert bench.service.log[0].body["parameters"]["stop"] == ["a", "b", "c", "d"]
    assert bench.service.log[1].body["stop"] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("reason", ["stop", "length"])
async def test_the_whole_text_at_the_end_is_no_delta(bench: Bench, reason: str) -> None:
    bench.service.reset(Answer(deltas=("to", "tal", " = a"), finish_reason=reason))
    deltas = await answer(bench.backend, raw())
    assert "".join(delta.text for delta in deltas) == "total = a"
    assert len(deltas) >= 3


async def test_whole_answers(bench: Bench) -> None:
    backend = bench.build(parameters={"stream": False})
    assert await text(backend, raw()) == await text(backend, chat()) == "return a + b"
    assert [seen.path for seen in bench.service.log] == ["/generate", "/v1/chat/completions"]


async def test_probe(bench: Bench) -> None:
    checks = {check.name: check.ok for check in (await bench.backend.probe()).checks}
    assert checks == {"key": True, "request": True, "TLS": True, "latency": True, "model": True}
