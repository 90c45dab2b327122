"""Which kinds of backend there are. Imports one only when it is used; must not know what any of them does."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import cast

from backends.base import Backend, BackendError, ErrorKind, Observer
from backends.settings import BackendSettings

ENTRY_POINTS = "midfill.backends"

KINDS: Mapping[str, str] = MappingProxyType(
    {
        "ffm": "backends.ffm:FfmBackend",
        "qianfan": "backends.qianfan:QianfanBackend",
        "llama-server": "backends.llama_server:LlamaServerBackend",
        "ollama": "backends.ollama:OllamaBackend",
        "mistral": "backends.mistral:MistralBackend",
        "deepseek": "backends.deepseek:DeepseekBackend",
        "tgi": "backends.tgi:TgiBackend",
        "tabby": "backends.tabby:TabbyBackend",
        "xinference": "backends.xinference:XinferenceBackend",
        "openai": "backends.openai:OpenAIBackend",
        "llama-cpp": "backends.llama_cpp:LlamaCppBackend",
    }
)

Constructor = Callable[[str, BackendSettings, Observer], Backend]


def create(name: str, settings: BackendSettings, observer: Observer) -> Backend:
    """Build the backend of one settings entry. Raises BackendError(SETTINGS)."""
    kind = settings.kind
    if kind in KINDS:
        module, _, attribute = KINDS[kind].partition(":")
        constructor = cast(Constructor, getattr(importlib.import_module(module), attribute))
        return constructor(name, settings, observer)
    outside = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if kind in outside:
        return _outside(outside[kind], name, settings, observer)
    known = ", ".join([*KINDS, *sorted(outside)])
    raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.kind is {kind!r}; allowed: {known}.")


def _outside(point: EntryPoint, name: str, settings: BackendSettings, observer: Observer) -> Backend:
    """Whatever is wrong with another package is told as a setting that cannot be used."""
    try:
        return cast(Constructor, point.load())(name, settings, observer)
    except BackendError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise BackendError(
            ErrorKind.SETTINGS, f"The backend kind {point.name!r} ({point.value}) cannot be loaded: {why}"
        ) from error
