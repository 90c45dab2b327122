"""The ollama backend against its loopback service."""

from __future__ import annotations

from typing import Any

import pytest

from backends.base import BackendError, ErrorKind, Shape
from completion.types import Completion
from tests.backends.asking import chat, infill, raw, suggestion, text
from tests.backends.contract import Bench

pytestmark = pytest.mark.parametrize("kind", ["ollama"], indirect=True)
MARKED = "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n"


def test_the_address_need_not_be_set_the_model_must_be(bench: Bench) -> None:
    assert not bench.build(url="").capabilities.remote
    with pytest.raises(BackendError, match=r"backends\.work\.model is not set; allowed: a name that `ollama list`"):
        bench.build(model="")


async def test_a_model_without_a_template_for_it_is_asked_raw(bench: Bench) -> None:
    backend = bench.build(model="llama3", family="qwen2.5-coder")
    assert backend.capabilities.shapes == {Shape.INFILL, Shape.RAW}
    outcome = await suggestion(backend, MARKED)
    assert isinstance(outcome, Completion)
    asked = [(seen.path, seen.body.get("raw"), "suffix" in seen.body) for seen in bench.service.log]
    assert asked[0] == ("/api/generate", None, True)
    assert len(asked) == 2
    assert backend.capabilities.shapes == {Shape.RAW, Shape.CHAT}
    assert len(bench.notices.notices) == 1


async def test_a_model_that_is_not_there(bench: Bench) -> None:
    await bench.fails(
        ErrorKind.MODEL_NOT_FOUND,
        "model 'nobody' not found",
        "`ollama pull nobody`",
        backend=bench.build(model="nobody"),
    )


@pytest.mark.parametrize("parameters", [{"num_ctx": 2048}, {"options": {"num_ctx": 2048}}])
async def test_options_stand_where_they_count(bench: Bench, parameters: dict[str, Any]) -> None:
    backend = bench.build(parameters=parameters | {"keep_alive": -1})
    assert backend.capabilities.context_tokens == 2048
    for request in (infill(), raw(), chat()):
        await text(backend, request)
    for seen in bench.service.log:
        assert seen.body["keep_alive"] == -1
        assert seen.body["options"]["num_ctx"] == 2048


async def test_an_empty_file_is_a_question_too(bench: Bench) -> None:
    assert await text(bench.backend, infill("", "")) == "return a + b"
    assert await text(bench.backend, raw("")) == "return a + b"


async def test_probe(bench: Bench) -> None:
    checks = {check.name: check.ok for check in (await bench.backend.probe()).checks}
    assert checks == {"key": True, "infill": True, "request": True, "TLS": True, "latency": True}
    found = (await bench.build(model="nobody").probe()).checks
    assert "ollama pull nobody" in next(check.detail for check in found if check.name == "request")


@pytest.mark.parametrize("options", [5, "abc", ["a"]])
def test_options_that_are_no_table_are_named(bench: Bench, options: Any) -> None:
    with pytest.raises(BackendError, match=r"^backends\.work\.parameters\.options: allowed: a table\.$") as caught:
        bench.build(parameters={"options": options})
    assert caught.value.kind is ErrorKind.SETTINGS
