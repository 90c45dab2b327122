"""VS Code with the extension: what the server is told at its start and of settings, and what a folder cannot set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.tap import messages
from tests.editors.vscode_editor import SETTINGS, Vscode, server, vscode
from tests.editors.vscode_parts import missing
from tests.lsp_client import client_params
from tests.services.ffm import FfmService

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),  # with a window or two that are opened
    pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}"),
]


@pytest.fixture(scope="module")
def tap(folder: Path) -> Path:
    """What VS Code wrote to the server."""
    return folder / "tap.jsonl"


@pytest.fixture(scope="module")
def stolen(folder: Path) -> Path:
    """Made by a command that the workspace names."""
    return folder / "stolen"


def workspace(folder: Path, name: str, stolen: Path) -> Path:
    """A folder whose settings name a server, commands, and one thing that a folder may set."""
    made = folder / name
    (made / ".vscode").mkdir(parents=True)
    command = ["/bin/sh", "-c", f"touch {stolen}"]
    settings = {
        "midfill.server.command": command,
        "midfill.backend": "stolen",
        "midfill.backends": {"stolen": {"kind": "ffm", "url": "http://127.0.0.1:1/", "keyCommand": command}},
        "midfill.languages": {"python": {"enabled": False}},
        "midfill.privacy.redact": False,
        "midfill.completion.maxLines": 7,
    }
    (made / ".vscode" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def editor(folder: Path, server_arguments: list[str], service: FfmService, tap: Path, stolen: Path) -> Iterator[Vscode]:
    config = folder / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + "max_tokens = 55\ncache_entries = 0\n", encoding="utf-8")
    settings = {
        **server(folder, *server_arguments, tap=tap, environ={KEY_ENV: KEY}),
        "midfill.completion.temperature": 0.25,
    }
    with vscode(workspace(folder, "workspace", stolen), settings) as editor:
        script(service, "a + b")
        editor.attach(folder / "workspace" / "first.py")
        yield editor


def given(tap: Path) -> list[Any]:
    """The answers of VS Code to the question for settings."""
    return [message["result"][0] for message in messages(tap) if isinstance(message.get("result"), list)]


def asked_next(editor: Vscode, service: FfmService, file: Path) -> dict[str, Any]:
    """The parameters of a new request."""
    before = len(service.log)
    editor.edit(file, "def add(a, b):\n    return\n", (2, 10))
    editor.type(" ")
    editor.until(lambda: len(service.log) > before, "a request")
    parameters: dict[str, Any] = service.log[before].body["parameters"]
    editor.shows("a + b")
    editor.close_files()
    return parameters


def test_the_recorded_client_is_this_one(editor: Vscode, tap: Path) -> None:
    """tests/clients has what VS Code says of itself, for tests that have no VS Code."""
    (initialize,) = messages(tap, "initialize")
    recorded = client_params("vscode-1.139")
    assert initialize["params"]["capabilities"] == recorded["capabilities"]
    assert initialize["params"].keys() == recorded.keys()


def test_only_what_is_set_reaches_the_server(editor: Vscode, service: FfmService, tap: Path, tmp_path: Path) -> None:
    assert given(tap)
    assert given(tap)[-1] == {"completion": {"temperature": 0.25, "maxLines": 7}}
    parameters = asked_next(editor, service, tmp_path / "code.py")
    assert parameters["max_new_tokens"] == 55, "what the settings' schema has as default is no setting"
    assert parameters["temperature"] == 0.25


def test_a_folder_names_no_server_and_no_backend(editor: Vscode, stolen: Path, folder: Path) -> None:
    (process,) = editor.servers()
    assert str(folder / "config.toml") in process.cmdline()
    assert editor.status()["backend"] == "work"
    assert editor.status()["enabled"] is True
    assert not stolen.exists()


def test_a_project_file_that_changes_is_read(
    editor: Vscode, service: FfmService, tap: Path, folder: Path, tmp_path: Path
) -> None:
    file = folder / "workspace" / ".midfill.toml"
    file.write_text("[completion]\nmax_tokens = 21\n", encoding="utf-8")
    editor.until(lambda: messages(tap, "workspace/didChangeWatchedFiles") != [], "VS Code has seen it")
    editor.until(
        lambda: asked_next(editor, service, tmp_path / "code.py")["max_new_tokens"] == 21, "the server has read it"
    )


def test_a_changed_setting_reaches_the_running_server(
    editor: Vscode, service: FfmService, tap: Path, tmp_path: Path
) -> None:
    (process,) = editor.servers()
    editor.set("midfill.completion.maxTokens", 33)
    wanted = {"completion": {"temperature": 0.25, "maxLines": 7, "maxTokens": 33}}
    editor.until(lambda: given(tap)[-1] == wanted, "the server is told")
    editor.until(
        lambda: asked_next(editor, service, tmp_path / "code.py")["max_new_tokens"] == 33, "the server uses it"
    )
    assert editor.servers() == [process]


def test_a_folder_that_nobody_trusts(
    editor: Vscode, service: FfmService, tap: Path, stolen: Path, folder: Path
) -> None:
    trust = {"security.workspace.trust.enabled": True, "security.workspace.trust.startupPrompt": "never"}
    editor.configure("User", {**SETTINGS, **trust})
    before = len(given(tap))
    here = workspace(folder, "untrusted", stolen)
    editor.open(here)
    assert editor.js("return vscode.workspace.isTrusted") is False
    script(service, "a + b")
    editor.attach(here / "first.py")
    assert len(given(tap)) > before
    assert given(tap)[-1] == {"completion": {"temperature": 0.25}}
    editor.edit(here / "code.py", "def add(a, b):\n    return\n", (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.press("Tab")
    editor.becomes("def add(a, b):", "    return a + b", "")
    assert not stolen.exists()
