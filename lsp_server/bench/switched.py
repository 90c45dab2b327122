"""Parts of the local engine switched off, by `parameters` of its settings. Knows no bench and no part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from lsp_server.commands._terminal import Terminal
from lsp_server.settings import LOCAL_DEFAULTS, Settings


class Notices(Terminal):
    """Keeps to itself that a parameter is unknown: `unknown` is true once a backend that has it was prepared."""

    unknown = False

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        if key.endswith(":parameters"):
            self.unknown = True
        else:
            super().notice(key, message, warning=warning)


def switched(settings: Settings, parameters: Mapping[str, Any]) -> Settings | None:
    """None if no backend is a local engine: the others have no such parameters."""
    backends = dict(settings.backends)
    local = [name for name in settings.order if backends[name].kind == LOCAL_DEFAULTS["kind"]]
    for name in local:
        merged = MappingProxyType({**backends[name].parameters, **parameters})
        backends[name] = replace(backends[name], parameters=merged)
    return replace(settings, backends=MappingProxyType(backends)) if local else None


def unknown(parameters: Mapping[str, Any]) -> str:
    """Why something was left out."""
    return f"this local engine has no parameter {' or '.join(parameters)}"
