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
    model: str = ""  # `llama-cpp`: a name of the table, a file of a hub or a path; empty: embedded
    key_env: str = ""
    key_command: tuple[str, ...] = ()
    family: str = ""  # prompt family; empty: guessed from the model's name
    mode: str = ""  # how `openai`, `qianfan` and `xinference` ask; empty: found out by asking
    timeout_s: float = 10.0  # overall deadline of one request
    connect_timeout_s: float = 5.0
    first_token_timeout_s: float = 0.0  # until the first text; 0: only `timeout_s` counts
    ca_file: str = ""
    client_cert: str = ""  # PEM; may hold the key, too
    client_key: str = ""
    proxy: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    parameters: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)  # passed to the service as they are
    # Qianfan only.
    api: str = ""  # "v1" or "v2"; empty: v2
    access_key_env: str = ""  # with secret_key_env: keys of the cloud's access management (IAM)
    secret_key_env: str = ""  # with key_env or key_command: the keys of a V1 application
    app_id: str = ""
    endpoint: str = ""  # V1: end of the model's address; empty: found by the model's name
    # Local engine only.
    model_path: str = ""  # a GGUF file, wins over `model`, which is then a mere name
    context_tokens: int = 4096  # n_ctx
    threads: int = 0  # 0: one per physical core
    gpu_layers: int = -2  # -1: all; -2: as many as its memory holds
    kv_type: str = "f16"  # numbers of the KV cache: "f16", "q8_0" or "q4_0"
    idle_unload_s: float = 1800.0  # after so long without a request the model leaves memory; 0: never
