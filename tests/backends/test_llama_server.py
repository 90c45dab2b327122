"""The llama-server backend against its loopback service: prompts it takes, what it learns."""

from __future__ import annotations

import pytest

from backends.base import BackendError, ErrorKind, Shape
from completion.types import Completion
from tests.backends.asking import chat, infill, raw, suggestion, text
from tests.backends.contract import Bench
from tests.services.common import Answer

pytestmark = pytest.mark.parametrize("kind", ["llama-server"], indirect=True)
MARKED = "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n"


def test_the_address_need_not_be_set(bench: Bench) -> None:
    assert not bench.build(url="").capabilities.remote


def test_infill_prompts_are_taken_literally_raw_ones_are_not(bench: Bench) -> None:
    taken = bench.backend.capabilities
    assert (taken.shapes, taken.literal_text, taken.extra_files) == (frozenset({Shape.INFILL}), True, True)


async def test_a_model_without_infill_tokens_is_told_of_once_and_asked_raw(bench: Bench) -> None:
    bench.service.infills = False
    try:
        outcome = await suggestion(bench.backend, MARKED)
        assert isinstance(outcome, Completion)
        assert outcome.text == "return a + b"
        assert [seen.path for seen in bench.service.log] == ["/infill", "/completion"]
        assert "<|fim_suffix|>" in bench.service.log[1].body["prompt"]
        with pytest.raises(BackendError) as caught:
            await text(bench.backend, infill())
        assert caught.value.kind is ErrorKind.INFILL_UNSUPPORTED
        assert len(bench.service.log) == 2  # nobody needs to be asked again
        assert len(bench.notices.notices) == 1
        taken = bench.backend.capabilities
        assert (taken.shapes, taken.literal_text) == (frozenset({Shape.RAW, Shape.CHAT}), False)
    finally:
        bench.service.infills = True


async def test_special_tokens_in_the_users_text_reach_an_infill_as_they_are(bench: Bench) -> None:
    await suggestion(bench.backend, "token = '<|fim_suffix|>'\nx = ⟦|⟧\n")
    assert bench.service.log[0].body["input_prefix"] == "token = '<|fim_suffix|>'\nx = "


async def test_they_are_broken_in_a_raw_prompt(bench: Bench) -> None:
    bench.service.infills = False
    try:
        await suggestion(bench.backend, "token = '<|fim_suffix|>'\nx = ⟦|⟧\n")
    finally:
        bench.service.infills = True
    assert bench.service.log[1].body["prompt"].count("<|fim_suffix|>") == 1


async def test_the_server_tells_its_model_and_context(bench: Bench) -> None:
    backend = bench.build(model="")
    assert (backend.model, backend.capabilities.context_tokens) == ("", None)
    fingerprint = backend.fingerprint
    await backend.prepare()
    assert (backend.model, backend.capabilities.context_tokens) == ("qwen2.5-coder-7b-q8_0", 4096)
    assert backend.fingerprint == fingerprint
    await text(backend, infill())
    assert "model" not in bench.service.log[0].body


async def test_a_set_model_stays_and_is_sent(bench: Bench) -> None:
    backend = bench.build(model="mine")
    await backend.prepare()
    assert backend.model == "mine"
    await text(backend, infill())
    assert bench.service.log[0].body["model"] == "mine"


async def test_a_server_that_still_loads_is_asked_again(bench: Bench) -> None:
    bench.service.loading = True  # type: ignore[attr-defined]
    await bench.backend.prepare()
    assert bench.backend.capabilities.context_tokens is None
    bench.service.loading = False  # type: ignore[attr-defined]
    await bench.backend.prepare()
    assert bench.backend.capabilities.context_tokens == 4096


async def test_a_server_that_is_not_there(bench: Bench) -> None:
    backend = bench.build(url="http://127.0.0.1:9")
    with pytest.raises(BackendError) as caught:
        await backend.prepare()
    assert caught.value.kind is ErrorKind.UNREACHABLE


async def test_all_stop_strings_are_sent(bench: Bench) -> None:
    stop = tuple(f"stop {number}" for number in range(20))
    for request in (infill(stop=stop), raw(stop=stop), chat(stop=stop)):
        await text(bench.backend, request)
    assert [seen.body["stop"] for seen in bench.service.log] == [list(stop)] * 3


@pytest.mark.parametrize(("final", "split"), [("normal", 0), ("old", 0), ("old", 1)])
async def test_errors_in_the_stream_old_and_new(bench: Bench, final: str, split: int) -> None:
    bench.service.reset(Answer(stream_error="slot unavailable", final=final, split=split))
    await bench.fails(ErrorKind.STREAM_ERROR, "slot unavailable")
    bench.service.reset(Answer(final=final, split=split))
    assert await bench.text() == "return a + b"


async def test_probe(bench: Bench) -> None:
    checks = {check.name: (check.ok, check.detail) for check in (await bench.build(model="").probe()).checks}
    assert checks["infill"] == (True, "qwen2.5-coder-7b-q8_0 infills")
    assert checks["model"] == (True, "qwen2.5-coder-7b-q8_0, 4096 tokens of context")
    bench.service.infills = False
    try:
        checks = {check.name: (check.ok, check.detail) for check in (await bench.build().probe()).checks}
    finally:
        bench.service.infills = True
    assert (checks["infill"][0], checks["request"][0]) == (False, True)
