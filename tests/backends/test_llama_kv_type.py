"""The numbers of the KV cache: each kind answers, reuses what it evaluated, and moves the suffix."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from backends.base import BackendError, BackendRequest, Delta, ErrorKind, Piece, RawPrompt, SilentObserver
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings
from tests import tiny_gguf
from tests.llama_child import needs_llama

pytestmark = needs_llama


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.random(tmp_path_factory.mktemp("models") / "random.gguf", width=128, layers=2)


async def last(backend: LlamaCppBackend, text: str) -> Delta:
    async with aclosing(backend.stream(BackendRequest(RawPrompt((Piece(text),)), 4))) as deltas:
        return [delta async for delta in deltas][-1]


@pytest.mark.parametrize("kv_type", ["f16", "q8_0", "q4_0"])
async def test_every_kind_answers_and_is_reused(model: Path, kv_type: str) -> None:
    settings = BackendSettings("llama-cpp", model_path=str(model), context_tokens=512, threads=1, kv_type=kv_type)
    async with aclosing(LlamaCppBackend("local", settings, SilentObserver())) as backend:
        await last(backend, "abcdefgh" * 10)
        again = await last(backend, "abcdefgh" * 10 + "a")
    assert again.usage is not None
    assert again.usage.reused_tokens
    assert again.usage.reused_tokens >= 70


async def test_a_model_that_cannot_have_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    odd = tiny_gguf.random(tmp_path / "odd.gguf", width=24, layers=1)  # heads that are no multiple of a block
    settings = BackendSettings("llama-cpp", model_path=str(odd), context_tokens=512, threads=1, kv_type="q8_0")
    async with aclosing(LlamaCppBackend("local", settings, SilentObserver())) as backend:
        with pytest.raises(BackendError) as caught:
            await last(backend, "ab")
    assert caught.value.kind is ErrorKind.BAD_MODEL
