"""What can be set for one backend entry. Knows nothing of where settings come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """One `[backends.<name>]` table. Secrets never stand here: `key_env` and `key_command` say where to find them."""

    kind: str
    url: str = ""
    model: str = ""
    key_env: str = ""
    key_command: tuple[str, ...] = ()
    family: str = ""  # prompt family; empty: guessed from the model's name
    mode: str = ""  # how `openai` and `xinference` ask; empty: found out by asking
    timeout_s: float = 10.0  # overall deadline of one request
    connect_timeout_s: float = 5.0
    ca_file: str = ""
    proxy: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    parameters: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)  # passed to the service as they are
    # Local engine only.
    model_path: str = ""  # a GGUF file; empty: the embedded model
    context_tokens: int = 4096  # n_ctx
    threads: int = 0  # 0: one per physical core
    gpu_layers: int = 0  # -1: all
