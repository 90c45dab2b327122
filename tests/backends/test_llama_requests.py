"""What a request to the local backend may ask for beside text: several answers, one that fits, none yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest

from backends.base import (
    BackendError,
    BackendRequest,
    Delta,
    ErrorKind,
    InfillPrompt,
    Piece,
    RawPrompt,
    Sampling,
    SilentObserver,
    Usage,
)
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings
from tests import tiny_gguf
from tests.llama_child import needs_llama

pytestmark = needs_llama

Make = Callable[..., LlamaCppBackend]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[LlamaCppBackend] = []

    def build(path: Path, **settings: Any) -> LlamaCppBackend:
        entry = BackendSettings("llama-cpp", model_path=str(path), threads=1, timeout_s=60.0, **settings)
        made.append(LlamaCppBackend("local", entry, SilentObserver()))
        return made[-1]

    yield build
    for backend in made:
        await backend.aclose()


async def answer(backend: LlamaCppBackend, request: BackendRequest) -> tuple[str, Delta]:
    async with aclosing(backend.stream(request)) as deltas:
        received = [delta async for delta in deltas]
    return "".join(delta.text for delta in received), received[-1]


async def at_work(backend: LlamaCppBackend) -> None:
    """Until the child has been asked."""
    process = backend._process
    assert process is not None
    for _ in range(1000):
        if not process.idle.is_set():
            return
        await asyncio.sleep(0)


async def test_several_answers(make: Make, tmp_path: Path) -> None:
    follows: tiny_gguf.Follows = {"1": dict.fromkeys("abcdef", 1.0)}
    backend = make(tiny_gguf.scripted(tmp_path / "several.gguf", follows), parameters={"seed": 1})
    request = BackendRequest(RawPrompt((Piece("x1"),)), 4, candidates=3)
    async with aclosing(backend.stream(request)) as deltas:
        received = [delta async for delta in deltas]
    assert {delta.index for delta in received if delta.text} == {0, 1, 2}
    assert received[-1].usage == Usage(2, 0, 3)


async def test_what_follows_the_hole_decides(make: Make, tmp_path: Path) -> None:
    follows: tiny_gguf.Follows = {"=": {"a": 1.0, "b": 0.99}, "b": {"Ċ": 1.0, "z": 0.8}, "z": "z"}
    path = tiny_gguf.scripted(tmp_path / "judge.gguf", follows, fim=False)
    request = BackendRequest(RawPrompt((Piece("x="),), "zzz"), 4, first_line=True)
    for judge, expected in ((True, "b\n"), (False, "a")):
        assert (await answer(make(path, parameters={"judge": judge, "seed": 1}), request))[0] == expected


async def test_a_prompt_is_evaluated_beforehand(make: Make, tmp_path: Path) -> None:
    backend = make(tiny_gguf.scripted(tmp_path / "hello.gguf", {}))
    await backend.prepare()
    assert backend.capabilities.warms
    text, last = await answer(backend, BackendRequest(InfillPrompt("abcdef", "x"), 0))
    assert (text, last.usage) == ("", Usage(10, 0, 0))
    _, last = await answer(backend, BackendRequest(InfillPrompt("abcdef", "x"), 4))
    assert last.usage is not None
    assert last.usage.reused_tokens == 9


async def test_sampling_of_a_request_wins_over_the_settings(make: Make, tmp_path: Path) -> None:
    backend = make(tiny_gguf.random(tmp_path / "random.gguf"), parameters={"seed": 1, "top_k": 1})

    async def drawn(**sampling: Any) -> str:
        request = BackendRequest(RawPrompt((Piece("ab"),)), 20, temperature=5.0, sampling=Sampling(**sampling))
        return (await answer(backend, request))[0]

    greedy = await drawn()
    assert await drawn(seed=2) == greedy
    assert await drawn(seed=2, top_k=1000) != greedy
    assert await drawn(seed=2, top_k=1000) == await drawn(seed=2, top_k=1000)
    assert await drawn(seed=2, top_k=1000) != await drawn(seed=3, top_k=1000)


async def test_killed_in_the_middle_of_a_prompt(make: Make, tmp_path: Path) -> None:
    backend = make(tiny_gguf.random(tmp_path / "slow.gguf", width=384, layers=8))
    await backend.prepare()
    long = BackendRequest(RawPrompt((Piece("abcdefgh" * 250),)), 4)
    task = asyncio.create_task(answer(backend, long))
    await at_work(backend)
    psutil.Process(backend.pid).kill()
    with pytest.raises(BackendError) as caught:
        await task
    assert caught.value.kind is ErrorKind.CRASHED
    _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2))
    assert last.usage == Usage(2, 0, 2)


async def test_a_warming_gives_way_at_once(make: Make, tmp_path: Path) -> None:
    """What it had evaluated stays; what it was at is given up."""
    backend = make(tiny_gguf.random(tmp_path / "slow.gguf", width=384, layers=8))
    await backend.prepare()
    text = "".join(chr(97 + i * i % 26) for i in range(2000))
    warming = asyncio.create_task(answer(backend, BackendRequest(RawPrompt((Piece(text),)), 0)))
    await at_work(backend)
    warming.cancel()
    _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2))
    assert last.usage == Usage(2, 0, 2)
    _, last = await answer(backend, BackendRequest(RawPrompt((Piece(text),)), 0))
    assert last.usage is not None
    assert (last.usage.reused_tokens or 0) < 1900
