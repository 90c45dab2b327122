"""What `midfill bench typing` compares: the whole engine, and it without one part of the request policy each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.settings import load

WHOLE = "all as it is"


@dataclass(frozen=True, slots=True)
class Variant:
    """`settings` as an editor sends them. `only`: "local" or "ffm", where the others are no different.

    `ahead`: whether prompts are evaluated ahead.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    ahead: bool = True
    only: str = ""


VARIANTS = (
    Variant(WHOLE),
    Variant("without cache", {"completion": {"cacheEntries": 0}}),
    Variant("without join", {"completion": {"join": False}}),
    Variant("fixed debounce", {"completion": {"adaptiveDebounce": False}}),
    Variant("without speculation", {"completion": {"speculate": "never"}}, only="local"),
    Variant("with speculation", {"completion": {"speculate": "always"}}, only="ffm"),
    Variant("without learning", {"completion": {"learning": False}}),
    Variant("without context", {"context": {"sources": []}}),
    Variant("without warm-up", ahead=False, only="local"),
    Variant(
        "without all of these",
        {
            "completion": {
                "cacheEntries": 0,
                "join": False,
                "adaptiveDebounce": False,
                "speculate": "never",
                "learning": False,
            },
            "context": {"sources": []},
        },
        ahead=False,
    ),
)


def known(config: Path) -> tuple[list[Variant], dict[str, str]]:
    """Those whose settings there are, and why each of the others is left out. `config` is an empty file."""
    found, left_out = [], {}
    for variant in VARIANTS:
        _, problems = load(config, [], {}, variant.settings)
        if problems:
            left_out[variant.name] = str(problems[0])
        else:
            found.append(variant)
    return found, left_out
