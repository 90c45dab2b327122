"""The configurations in docs/editors.md for editors that are not run: each can be parsed, and starts `midfill`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "editors.md").read_text(encoding="utf-8")


def block(editor: str, kind: str) -> str:
    section = re.split(r"^##+ ", PAGE.split(f"\n### {editor}\n")[1], flags=re.MULTILINE)[0]
    found: list[str] = re.findall(rf"^```{kind}\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    assert len(found) == 1, editor
    return found[0]


def test_helix() -> None:
    settings = tomllib.loads(block("Helix", "toml"))
    assert settings["language-server"] == {"midfill": {"command": "midfill"}}
    assert all("midfill" in language["language-servers"] for language in settings["language"])


def test_kakoune() -> None:
    text = block("Kakoune", "kak")
    assert text.count("{") == text.count("}"), "%{ } ends at the brace that closes it"
    found = re.search(r"lsp_servers %\{\n(.*?)\n    \}", text, flags=re.DOTALL)
    assert found
    servers = tomllib.loads(found[1])  # the command of a server is its name
    assert {"midfill"} < servers.keys()
    assert all(server.keys() == {"root_globs"} for server in servers.values())
    assert text.index("kak-lsp}") < text.index("hook global") < text.index("lsp-enable")


def test_sublime_text() -> None:
    settings = json.loads(block("Sublime Text", "json"))
    assert settings == {"midfill": {"enabled": True, "command": ["midfill"], "selector": "source"}}


def test_jetbrains() -> None:
    template = json.loads(block("JetBrains", "json"))
    assert template["programArgs"] == {"default": "midfill"}
    assert template["fileTypeMappings"][0]["languageId"] == "python"


def test_each_section_says_how_it_asks() -> None:
    table = PAGE.split("## Editors that were not run")[1].split("###")[0]
    rows = {row.split()[1]: row for row in table.split("\n") if row.startswith("| ") and not row.startswith("| editor")}
    assert rows.keys() == {"Helix", "Kakoune", "Sublime", "JetBrains", "Zed"}
    method = re.compile(r"`(?:textDocument/(?:inlineC|c)ompletion|/v1/completions)`")
    assert [name for name, row in rows.items() if not method.search(row)] == []
