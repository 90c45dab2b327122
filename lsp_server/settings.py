"""Every setting from every place, merged and checked. Knows nothing of LSP messages or of how backends work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backends.settings import BackendSettings
from completion.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class Problem:
    """One setting that was not taken. Holds no secret."""

    path: str  # "completion.debounce_ms"; empty: the whole file
    source: str  # "environment variable MIDFILL_…", "editor setting midfill.…" or a file's path
    found: str  # what stood there, shortened; empty where it must not be shown
    allowed: str

    def __str__(self) -> str:
        what = f"{self.path}: " if self.path else ""
        found = f"{self.found}: " if self.found else ""
        return f"{what}{found}{self.allowed} ({self.source})"


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings. `backend` names an entry of `backends`, or is empty if there is none to use."""

    backend: str = ""
    backends: Mapping[str, BackendSettings] = field(default_factory=lambda: MappingProxyType({}))
    engine: EngineSettings = EngineSettings()
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # path -> where it was set


def load(
    config_file: Path | None,
    roots: Sequence[Path],
    environ: Mapping[str, str],
    client: Mapping[str, Any] | None,
) -> tuple[Settings, tuple[Problem, ...]]:
    """Merge the user's file, `.midfill.toml` of each root, the environment and the client's settings; later wins.

    `config_file` stands in for the user's file; None: the usual place. Never raises for a wrong setting.
    """
    return Settings(), ()
