"""The mistral backend against its loopback service."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import BackendError, ErrorKind, Shape
from backends.mistral import MistralBackend
from completion.types import Completion
from tests.backends.asking import chat, infill, raw, suggestion, text
from tests.backends.contract import Bench
from tests.services.common import Answer

pytestmark = pytest.mark.parametrize("kind", ["mistral"], indirect=True)


def test_neither_address_nor_model_need_be_set(bench: Bench) -> None:
    backend = bench.build(url="", model="")
    assert isinstance(backend, MistralBackend)
    assert backend.model == "codestral-latest"
    assert backend.capabilities.remote
    assert str(backend.ask(infill()).url) == "https://api.mistral.ai/v1/fim/completions"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://codestral.mistral.ai", "takes keys of its own"),
        ("", "A key made for Codestral alone works at https://codestral.mistral.ai only."),
    ],
)
def test_each_host_has_keys_of_its_own(bench: Bench, url: str, words: str) -> None:
    backend = bench.build(url=url)
    assert isinstance(backend, MistralBackend)
    ask = backend.ask(infill())
    assert words in backend.hint(ErrorKind.AUTH, ask)
    assert backend.hint(ErrorKind.QUOTA, ask) == ""


async def test_a_model_that_does_not_infill_is_asked_in_a_chat(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("```python\nreturn a + b\n```",)))
    backend = bench.build(model="mistral-small-latest")
    outcome = await suggestion(backend, "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "return a + b"
    assert [seen.path for seen in bench.service.log] == ["/v1/fim/completions", "/v1/chat/completions"]
    assert backend.capabilities.shapes == {Shape.CHAT}
    with pytest.raises(BackendError, match="asked in a chat"):
        await text(backend, infill())
    assert len(bench.service.log) == 2


async def test_a_raw_prompt_is_refused_before_anything_is_sent(bench: Bench) -> None:
    with pytest.raises(BackendError) as caught:
        await text(bench.backend, raw())
    assert caught.value.kind is ErrorKind.SHAPE_UNSUPPORTED
    assert bench.service.log == []


async def test_an_unknown_model_leaves_infilling_on(bench: Bench) -> None:
    backend = bench.build(model="codestral-9999")
    await bench.fails(ErrorKind.MODEL_NOT_FOUND, "Invalid model: codestral-9999", backend=backend)
    assert backend.capabilities.shapes == {Shape.INFILL}


@pytest.mark.parametrize(("parameters", "error"), [({"random_seed": 7}, None), ({"seed": 7}, ErrorKind.BAD_REQUEST)])
async def test_the_seed_has_a_name_of_its_own(bench: Bench, parameters: Any, error: Any) -> None:
    backend = bench.build(parameters=parameters)
    if error:
        await bench.fails(error, "body.seed: Extra inputs are not permitted", backend=backend)
    else:
        assert await bench.text(backend) == "return a + b"
        assert bench.service.log[0].body["random_seed"] == 7


async def test_content_may_be_a_list(bench: Bench) -> None:
    bench.service.reset(Answer(final="list"))
    assert await text(bench.backend, infill()) == await text(bench.backend, chat()) == "return a + b"


async def test_a_model_that_fails_at_the_end(bench: Bench) -> None:
    bench.service.reset(Answer(finish_reason="error"))
    await bench.fails(ErrorKind.STREAM_ERROR, "the model failed")


async def test_probe_of_a_model_that_does_not_infill(bench: Bench) -> None:
    checks = {check.name: check.ok for check in (await bench.build(model="mistral-small-latest").probe()).checks}
    assert checks == {"key": True, "infill": False, "request": True, "TLS": True, "latency": True}
