"""What whoever asks has said of sampling, in the names and ranges of each service; and that it wins."""

from __future__ import annotations

from typing import Any

import pytest

from backends._qianfan_wire import sampling_v1
from backends.base import BackendRequest, Sampling
from tests.backends.asking import chat, infill, raw, text
from tests.backends.contract import Bench, kinds

ALL = Sampling(
    temperature=0.5,
    top_k=7,
    top_p=0.9,
    seed=42,
    repetition_penalty=1.5,
    frequency_penalty=0.25,
    presence_penalty=-0.5,
)
OPENAI = {"temperature": 0.5, "top_p": 0.9, "frequency_penalty": 0.25, "presence_penalty": -0.5}
LLAMA = {**OPENAI, "top_k": 7, "seed": 42, "repeat_penalty": 1.5}
NAMES = {
    *("temperature", "top_k", "top_p", "seed", "random_seed", "frequency_penalty", "presence_penalty"),
    *("repetition_penalty", "repeat_penalty", "penalty_score", "frequence_penalty"),
}

# kind, settings, request, where the fields stand, what stands there
CASES: list[tuple[str, dict[str, Any], BackendRequest, str, dict[str, Any]]] = [
    *(
        ("ffm", {}, asked, "parameters", {"temperature": 0.5, "top_k": 7, "top_p": 0.9, "frequence_penalty": 1.5})
        for asked in (infill(), raw())
    ),
    *(
        ("openai", {"mode": mode}, asked, "", {**OPENAI, "seed": 42})
        for mode, asked in (("suffix", infill()), ("template", raw()), ("chat", chat()))
    ),
    *(
        ("xinference", {"mode": mode}, asked, "", {**OPENAI, "top_k": 7, "repetition_penalty": 1.5})
        for mode, asked in (("template", raw()), ("chat", chat()))
    ),
    *(("llama-server", {}, asked, "", LLAMA) for asked in (infill(), raw(), chat())),
    *(("ollama", {}, asked, "options", LLAMA) for asked in (infill(), raw(), chat())),
    *(
        ("mistral", {}, asked, "", {"temperature": 0.5, "top_p": 0.9, "random_seed": 42})
        for asked in (infill(), chat())
    ),
    *(("deepseek", {}, asked, "", OPENAI) for asked in (infill(), chat())),
    (
        *("tgi", {}, raw(), "parameters"),
        {
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 7,
            "seed": 42,
            "repetition_penalty": 1.5,
            "frequency_penalty": 0.25,
        },
    ),
    ("tgi", {}, chat(), "", {**OPENAI, "seed": 42}),
    ("tabby", {}, infill(), "", {"temperature": 0.5, "seed": 42}),
    *(("qianfan", {}, asked, "", {"temperature": 0.5, "top_p": 0.9}) for asked in (infill(), chat())),
]


def fields(bench: Bench, where: str) -> dict[str, Any]:
    body = bench.service.log[-1].body
    found = body[where] if where else body
    return {name: value for name, value in found.items() if name in NAMES}


@pytest.mark.parametrize(
    ("kind", "settings", "request_", "where", "sent"),
    CASES,
    indirect=["kind"],
    ids=[f"{case[0]}-{type(case[2].prompt).__name__}" for case in CASES],
)
async def test_in_the_names_of_the_service(
    bench: Bench, settings: dict[str, Any], request_: BackendRequest, where: str, sent: dict[str, Any]
) -> None:
    request = BackendRequest(request_.prompt, request_.max_tokens, sampling=ALL)
    await text(bench.build(**settings), request)
    assert fields(bench, where) == sent
    # It wins over the settings, which win over the temperature that was not insisted on.
    backend = bench.build(**settings, parameters={**dict.fromkeys(sent, 1), "temperature": 0.7})
    await text(backend, request)
    assert fields(bench, where) == sent
    await text(backend, BackendRequest(request_.prompt, request_.max_tokens, temperature=0.2))
    assert fields(bench, where)["temperature"] == 0.7


@pytest.mark.parametrize("kind", ["ffm"], indirect=True)
async def test_the_nearest_value_that_ffm_allows(bench: Bench) -> None:
    await text(bench.backend, infill(sampling=Sampling(temperature=0.0, top_p=0.0, top_k=500)))
    assert fields(bench, "parameters") == {"temperature": 0.01, "top_p": 0.01, "top_k": 100}


@pytest.mark.parametrize("kind", ["tgi"], indirect=True)
async def test_what_tgi_refuses_is_left_out(bench: Bench) -> None:
    await text(bench.backend, raw(sampling=Sampling(temperature=0.0, top_p=1.0)))
    assert fields(bench, "parameters") == {}


def test_only_what_was_said_is_named() -> None:
    assert Sampling().named("temperature", seed="random_seed") == {}
    assert Sampling(seed=0, top_k=3).named("temperature", seed="random_seed") == {"random_seed": 0}


def test_every_kind_is_tried() -> None:
    assert {kind for kind, *_ in CASES} == set(kinds())


def test_qianfan_v1_within_its_ranges() -> None:
    said = {"temperature": 0.5, "top_p": 0.9, "penalty_score": 1.5}
    assert sampling_v1(ALL, chats=False) == {**said, "top_k": 7}
    assert sampling_v1(ALL, chats=True) == said
    edges = Sampling(temperature=2.0, top_p=0.0, repetition_penalty=0.5)
    assert sampling_v1(edges, chats=True) == {"temperature": 1.0, "top_p": 0.01, "penalty_score": 1.0}
