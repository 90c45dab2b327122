"""The deepseek backend against its loopback service."""

from __future__ import annotations

import pytest

from backends.base import BackendError, ErrorKind, Shape
from backends.deepseek import DeepseekBackend
from completion.types import Completion
from tests.backends.asking import chat, infill, raw, suggestion, text
from tests.backends.contract import Bench
from tests.services.common import Answer

pytestmark = pytest.mark.parametrize("kind", ["deepseek"], indirect=True)


def test_the_address_need_not_be_set_the_model_must_be(bench: Bench) -> None:
    backend = bench.build(url="")
    assert isinstance(backend, DeepseekBackend)
    assert str(backend.ask(infill()).url) == "https://api.deepseek.com/beta/completions"
    assert str(backend.ask(chat()).url) == "https://api.deepseek.com/chat/completions"
    with pytest.raises(BackendError, match=r"backends\.work\.model is not set"):
        bench.build(model="")


async def test_chat_is_not_part_of_the_beta(bench: Bench) -> None:
    assert await text(bench.build(url=bench.service.url + "/"), chat()) == "return a + b"
    assert bench.service.log[0].path == "/chat/completions"


async def test_limits_of_an_infill(bench: Bench) -> None:
    stop = tuple(f"stop {number}" for number in range(20))
    assert await text(bench.backend, infill(max_tokens=5000, stop=stop)) == "return a + b"
    assert bench.service.log[0].body["max_tokens"] == 4096
    assert bench.service.log[0].body["stop"] == list(stop[:16])


async def test_a_wrong_address_is_named(bench: Bench) -> None:
    backend = bench.build(url=bench.service.root)
    await bench.fails(ErrorKind.MODEL_NOT_FOUND, "infills at https://api.deepseek.com/beta only", backend=backend)
    error = await bench.fails(ErrorKind.MODEL_NOT_FOUND, backend=bench.build(url=bench.service.root + "/no/beta"))
    assert "infills at" not in error.message


async def test_a_model_that_does_not_infill_is_asked_in_a_chat(bench: Bench) -> None:
    bench.service.infills = False
    bench.service.reset(Answer(deltas=("```python\nreturn a + b\n```",)))
    try:
        outcome = await suggestion(bench.backend, "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n")
    finally:
        bench.service.infills = True
    assert isinstance(outcome, Completion)
    assert outcome.text == "return a + b"
    assert bench.backend.capabilities.shapes == {Shape.CHAT}
    with pytest.raises(BackendError) as caught:
        await text(bench.backend, raw())
    assert caught.value.kind is ErrorKind.SHAPE_UNSUPPORTED


async def test_a_service_that_gives_up(bench: Bench) -> None:
    bench.service.reset(Answer(finish_reason="insufficient_system_resource"))
    await bench.fails(ErrorKind.OVERLOADED, "insufficient_system_resource")
    bench.service.reset(Answer(finish_reason="content_filter"))
    assert await bench.text() == "return a + b"


async def test_an_empty_balance(bench: Bench) -> None:
    bench.service.reset(Answer(status=402, detail="Insufficient Balance"))
    await bench.fails(ErrorKind.QUOTA, "Insufficient Balance", "balance or quota")
