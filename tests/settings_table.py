"""Writes the tables of docs/configuration.md from the settings themselves: `python -m tests.settings_table`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

from backends.settings import BackendSettings
from completion.settings import CompletionSettings, ContextSettings, EngineSettings, PrivacySettings
from lsp_server.gateway.settings import GatewaySettings
from lsp_server.settings_schema import BACKEND, COMPLETION, CONTEXT, GATEWAY, PRIVACY, ROOT, Rule

PAGE = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"
TABLES = {
    "top level": (ROOT, SimpleNamespace(backend="", hedge_ms=EngineSettings().hedge_ms)),
    "completion": (COMPLETION, CompletionSettings()),
    "context": (CONTEXT, ContextSettings()),
    "privacy": (PRIVACY, PrivacySettings()),
    "gateway": (GATEWAY, GatewaySettings()),
    "backends": (BACKEND, BackendSettings(kind="")),
}


def table(rules: Mapping[str, Rule], defaults: object) -> str:
    lines = ["| setting | what it is for | allowed | default |", "|---|---|---|---|"]
    for name, rule in rules.items():
        lines.append(f"| `{name}` | {rule.help} | {rule.allowed} | {_shown(getattr(defaults, name))} |")
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, Mapping | tuple | str) and not value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{json.dumps(value)}`"


def filled(page: str) -> str:
    """The page with every table as it should be."""
    for name, (rules, defaults) in TABLES.items():
        marks = rf"(<!-- {name}, made by tests/settings_table\.py -->\n).*?(<!-- end -->)"
        content = table(rules, defaults)
        page, count = re.subn(marks, lambda m, c=content: f"{m[1]}\n{c}\n\n{m[2]}", page, flags=re.DOTALL)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the page has {count} places for the table {name!r}")
    return page


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
