"""The tabby backend against its loopback service."""

from __future__ import annotations

import dataclasses

import pytest

from backends.base import BackendError, BackendRequest, ErrorKind, File, InfillPrompt, Shape
from completion.types import Completion
from tests.backends.asking import chat, infill, raw, suggestion, text
from tests.backends.contract import Bench

pytestmark = pytest.mark.parametrize("kind", ["tabby"], indirect=True)
SNIPPETS = "relevant_snippets_from_recently_opened_files"


def test_neither_address_nor_model_need_be_set(bench: Bench) -> None:
    backend = bench.build(url="", model="")
    assert not backend.capabilities.remote
    assert (backend.capabilities.shapes, backend.capabilities.extra_files) == (frozenset({Shape.INFILL}), True)


async def test_the_language_and_the_path_are_told(bench: Bench) -> None:
    outcome = await suggestion(bench.backend, "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "return a + b"
    body = bench.service.log[0].body
    assert (body["language"], body["segments"]["filepath"]) == ("python", "a.py")


def with_files(*texts: str) -> BackendRequest:
    files = tuple(File(f"{number}.py", text) for number, text in enumerate(texts))
    return dataclasses.replace(infill(), prompt=InfillPrompt("x", "y", extra=files))


@pytest.mark.parametrize(
    ("texts", "sent"),
    [
        (("a\n", "b\n"), [("1.py", "b\n"), ("0.py", "a\n")]),
        (("a\n", "b" * 767 + "\n"), [("1.py", "b" * 767 + "\n")]),
        (("a\n", "b" * 766 + "\nc\n"), [("1.py", "b" * 766 + "\n")]),
        (("a\n", "界" * 300), [("0.py", "a\n")]),  # one line of 900 bytes: none of it fits
        (("a\n" * 10, "b" * 759 + "\n"), [("1.py", "b" * 759 + "\n"), ("0.py", "a\n" * 4)]),
        ((" \n",), []),
        ((), []),
    ],
)
async def test_as_much_of_other_files_as_the_server_has_room_for(
    bench: Bench, texts: tuple[str, ...], sent: list[tuple[str, str]]
) -> None:
    await text(bench.backend, with_files(*texts))
    snippets = bench.service.log[0].body["segments"].get(SNIPPETS, [])
    assert [(snippet["filepath"], snippet["body"]) for snippet in snippets] == sent
    assert sum(len(snippet["body"].encode()) for snippet in snippets) <= 768
    scores = [snippet["score"] for snippet in snippets]
    assert scores == sorted(scores, reverse=True)


async def test_other_shapes_are_refused_before_anything_is_sent(bench: Bench) -> None:
    for request in (raw(), chat()):
        with pytest.raises(BackendError) as caught:
            await text(bench.backend, request)
        assert caught.value.kind is ErrorKind.SHAPE_UNSUPPORTED
    assert bench.service.log == []


async def test_a_bare_refusal(bench: Bench) -> None:
    await bench.fails(
        ErrorKind.BAD_REQUEST, "HTTP 400.", "its own log does", backend=bench.build(parameters={"unknown": 1})
    )


async def test_probe(bench: Bench) -> None:
    checks = {check.name: check.detail for check in (await bench.build(model="").probe()).checks}
    assert checks["infill"] == "some/qwen2.5-coder-7b infills"
    assert checks["model"] == "some/qwen2.5-coder-7b"
