"""Writes the settings of the VS Code extension from the server's own: `python -m tests.vscode_settings`.

They stand in `contributes.configuration` of `editors/vscode/package.json`, behind those of the extension itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backends.settings import BackendSettings
from completion.settings import CompletionSettings, ContextSettings, EngineSettings, PrivacySettings
from lsp_server.settings_schema import BACKEND, COMPLETION, CONTEXT, LANGUAGE, PRIVACY, ROOT, Rule, camel

MANIFEST = Path(__file__).resolve().parent.parent / "editors" / "vscode" / "package.json"
JSON = Mapping[str, Any]

# VS Code's scopes. A workspace may bring settings of the scope "window" only, which is no more than a project file may;
# `src/settings.ts` says which of them it may switch off, but not on.
WINDOW = "window"
APPLICATION = "application"  # the user's, on every machine
MACHINE = "machine"  # the user's, for the machine that the server runs on: it names commands, files, services or keys
SCOPES = {
    "backend": MACHINE,
    "backends": MACHINE,
    "hedge_ms": MACHINE,
    "languages": APPLICATION,  # may hold `allow_remote`
    "completion.speculate": APPLICATION,  # may cost
    "context.sources": APPLICATION,  # says which files are quoted
    "privacy.ignore": APPLICATION,
    "privacy.ignore_files": APPLICATION,
    "privacy.redact": APPLICATION,
    "privacy.local_only": APPLICATION,
}
TYPES: Mapping[str, JSON] = {
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "str": {"type": "string"},
    "path": {"type": "string"},
    "choice": {"type": "string"},
    "url": {
        "type": "string",
        "pattern": "^(https?://.+)?$",
        "patternErrorMessage": "A URL begins with http:// or https://",
    },
    "env": {
        "type": "string",
        "pattern": "^([A-Za-z_][A-Za-z0-9_]*)?$",
        "patternErrorMessage": "A name has letters, digits and underscores",
    },
    "names": {"type": ["string", "array"], "items": {"type": "string"}},
    "headers": {"type": "object", "additionalProperties": {"type": "string"}},
    "json": {"type": "object"},
}
SNAKE = {name for table in (ROOT, COMPLETION, CONTEXT, PRIVACY, BACKEND) for name in table if "_" in name}


def schema(rule: Rule, default: object) -> dict[str, Any]:
    """The JSON schema of one setting."""
    if rule.kind == "strings":
        items: dict[str, Any] = {"type": "string"}
        if rule.choices:
            items["enum"] = list(rule.choices)
        found: dict[str, Any] = {"type": "array", "items": items}
        found |= {"uniqueItems": True} if rule.choices else {}
    else:
        found = dict(TYPES[rule.kind])
    if rule.kind in ("int", "float"):
        found |= {"minimum": _plain(rule.low), "maximum": _plain(rule.high)}
    if rule.kind == "choice":
        found["enum"] = list(rule.choices)
    return found | {"default": _plain(default), "markdownDescription": text(rule)}


def text(rule: Rule) -> str:
    """The help as VS Code shows it: names as they are written there, and no links to pages that are not there."""
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", rule.help).removesuffix(": see below")
    return re.sub(r"`(\w+)`", lambda found: f"`{camel(found[1])}`" if found[1] in SNAKE else found[0], words)


def _plain(value: object) -> object:
    """A default as JSON holds it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def _section(title: str, prefix: str, rules: Mapping[str, Rule], defaults: object) -> dict[str, Any]:
    properties = {}
    for order, (name, rule) in enumerate(rules.items(), start=1):
        path = f"{prefix}{name}"
        scope = SCOPES.get(path, WINDOW)
        default = getattr(defaults, name)
        properties[f"midfill.{_camels(path)}"] = schema(rule, default) | {"scope": scope, "order": order}
    return {"title": title, "properties": properties}


def _camels(path: str) -> str:
    return ".".join(camel(part) for part in path.split("."))


def _named(name: str, rules: Mapping[str, Rule], defaults: object, required: list[str], words: str) -> dict[str, Any]:
    """A table whose names the user chooses."""
    one = {camel(each): schema(rule, getattr(defaults, each)) for each, rule in rules.items()}
    entry = {"type": "object", "properties": one, "additionalProperties": False, "required": required}
    return {
        "type": "object",
        "additionalProperties": {k: v for k, v in entry.items() if v != []},
        "default": {},
        "markdownDescription": words,
        "scope": SCOPES[name],
        "order": 10,
    }


class _Root:
    backend = ""
    hedge_ms = EngineSettings().hedge_ms


class _Language(CompletionSettings):
    allow_remote = PrivacySettings().allow_remote


def sections() -> list[dict[str, Any]]:
    """Every setting of the server but those of its gateway, which is no editor's."""
    model = _section("Model", "", ROOT, _Root)
    model["properties"]["midfill.backends"] = _named(
        "backends", BACKEND, BackendSettings(kind=""), ["kind"], "What can speak to a model, by names that you choose."
    )
    completion = _section("Completion", "completion.", COMPLETION, CompletionSettings())
    completion["properties"]["midfill.languages"] = _named(
        "languages", LANGUAGE, _Language(), [], "What differs for a language, by its id, such as `python`."
    )
    return [
        model,
        completion,
        _section("Context", "context.", CONTEXT, ContextSettings()),
        _section("Privacy", "privacy.", PRIVACY, PrivacySettings()),
    ]


def filled(manifest: str) -> str:
    """The manifest with the settings as they should be."""
    tree = json.loads(manifest)
    own, made = tree["contributes"]["configuration"][0], sections()
    tree["contributes"]["configuration"] = [own, *made]
    scopes = {name: rule["scope"] for section in made for name, rule in section["properties"].items()}
    untrusted = tree["capabilities"]["untrustedWorkspaces"]
    untrusted["restrictedConfigurations"] = sorted(name for name, scope in scopes.items() if scope == WINDOW)
    return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    MANIFEST.write_text(filled(MANIFEST.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
