"""What is known of a model before it is asked."""

from __future__ import annotations

from typing import Any

import pytest

from backends.embedded import embedded_model
from backends.settings import BackendSettings
from lsp_server.compose import family_of


@pytest.mark.parametrize(
    ("settings", "family"),
    [
        ({"kind": "ffm", "model": "qwen2.5-coder-1.5b"}, ""),  # a service may call its models as it likes
        ({"kind": "ffm", "family": "codellama"}, "codellama"),
        ({"kind": "llama-cpp", "model": "qwen2.5-coder-1.5b"}, "qwen2.5-coder"),
        ({"kind": "llama-cpp", "model": "qwen2.5-coder-1.5b", "family": "codellama"}, "codellama"),
        ({"kind": "llama-cpp", "model": "qwen2.5-coder-1.5b", "model_path": "/models/other.gguf"}, ""),
        ({"kind": "llama-cpp", "model": "/models/my-model.gguf"}, ""),
        ({"kind": "llama-cpp"}, "smollm2" if embedded_model() else ""),
    ],
)
def test_family_of(settings: dict[str, Any], family: str) -> None:
    assert family_of(BackendSettings(**settings)) == family
