"""The settings of the VS Code extension are those of the server, and none of them may do harm from a workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from backends.settings import BackendSettings
from completion.settings import CompletionSettings, EngineSettings
from lsp_server.settings_schema import NAMED, ROOT, TABLES, Rule, camel, in_project
from tests.vscode_settings import APPLICATION, MACHINE, MANIFEST, WINDOW, filled, schema, text

TYPE_NAMES: Mapping[str, type | tuple[type, ...]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": list,
    "object": dict,
}


def manifest() -> str:
    return MANIFEST.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def properties() -> dict[str, Any]:
    sections = json.loads(manifest())["contributes"]["configuration"]
    return {name: rule for section in sections for name, rule in section["properties"].items()}


def settings() -> Iterator[tuple[str, Rule]]:
    """Path in snake_case and rule of each setting that an editor may have."""
    yield from ROOT.items()
    for table, rules in TABLES.items():
        if table != "gateway":
            yield from ((f"{table}.{name}", rule) for name, rule in rules.items())


def test_the_manifest_is_current() -> None:
    assert manifest() == filled(manifest()), "run: python -m tests.vscode_settings"


def test_a_changed_setting_is_noticed() -> None:
    changed = manifest().replace("midfill.completion.debounceMs", "midfill.completion.debounce")
    assert changed != filled(changed) == manifest()


@pytest.mark.parametrize(("path", "rule"), list(settings()), ids=lambda each: each if isinstance(each, str) else "")
def test_each_setting_is_there(properties: dict[str, Any], path: str, rule: Rule) -> None:
    check(properties["midfill." + ".".join(camel(part) for part in path.split("."))], rule)


@pytest.mark.parametrize("table", list(NAMED))
def test_each_setting_of_a_named_table_is_there(properties: dict[str, Any], table: str) -> None:
    entry = properties[f"midfill.{table}"]["additionalProperties"]
    assert set(entry["properties"]) == {camel(name) for name in NAMED[table]}
    for name, rule in NAMED[table].items():
        check(entry["properties"][camel(name)], rule)


def check(found: Mapping[str, Any], rule: Rule) -> None:
    assert found["markdownDescription"] == text(rule) != ""
    types = found["type"] if isinstance(found["type"], list) else [found["type"]]
    assert any(isinstance(found["default"], TYPE_NAMES[each]) for each in types)
    if rule.kind in ("int", "float"):
        assert (found["minimum"], found["maximum"]) == (rule.low, rule.high)
        assert rule.low <= found["default"] <= rule.high
    if rule.kind == "choice":
        assert tuple(found["enum"]) == rule.choices
    if rule.kind == "strings" and rule.choices:
        assert tuple(found["items"]["enum"]) == rule.choices


def test_defaults_are_those_of_the_server(properties: dict[str, Any]) -> None:
    assert properties["midfill.completion.debounceMs"]["default"] == CompletionSettings().debounce_ms
    assert properties["midfill.hedgeMs"]["default"] == EngineSettings().hedge_ms
    backend = properties["midfill.backends"]["additionalProperties"]["properties"]
    assert backend["gpuLayers"]["default"] == BackendSettings(kind="").gpu_layers


def test_there_is_nothing_else(properties: dict[str, Any]) -> None:
    known = {f"midfill.{'.'.join(camel(part) for part in path.split('.'))}" for path, _ in settings()}
    known |= {f"midfill.{table}" for table in NAMED}
    assert set(properties) - known == {"midfill.server.command", "midfill.trace.server"}


def test_a_workspace_may_set_no_more_than_a_project_file(properties: dict[str, Any]) -> None:
    """Of what a project file may set, the server itself holds back some values. VS Code's settings it trusts."""
    free = {name for name, rule in properties.items() if rule["scope"] == WINDOW}
    taken = {
        f"midfill.{'.'.join(camel(part) for part in p.split('.'))}"
        for p, _ in settings()
        if in_project(tuple(p.split(".")))
    }
    held_back = {"midfill.completion.speculate", "midfill.context.sources", "midfill.privacy.ignore"}
    assert free == taken - held_back
    restricted = json.loads(manifest())["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert set(restricted) == free


@pytest.mark.parametrize("name", ["server.command", "backend", "backends", "hedgeMs"])
def test_what_names_commands_services_or_keys_is_the_machines(properties: dict[str, Any], name: str) -> None:
    assert properties[f"midfill.{name}"]["scope"] == MACHINE


@pytest.mark.parametrize("name", ["languages", "privacy.redact", "privacy.ignoreFiles", "privacy.localOnly"])
def test_what_keeps_text_here_is_the_users(properties: dict[str, Any], name: str) -> None:
    assert properties[f"midfill.{name}"]["scope"] == APPLICATION


def test_help_as_vs_code_shows_it() -> None:
    rule = Rule("str", "Part of `prompt_tokens`, see [a page](page.md), as `llama-cpp`: see below")
    assert text(rule) == "Part of `promptTokens`, see a page, as `llama-cpp`"
    assert schema(Rule("float", "x", 0, 0.5), 0.2)["maximum"] == 0.5
