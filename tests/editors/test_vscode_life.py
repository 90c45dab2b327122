"""VS Code with the extension where something is missing, dies or refuses, and with the embedded model."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.life import LOCAL, refused_more
from tests.editors.vscode_editor import Vscode, server, vscode
from tests.editors.vscode_parts import missing
from tests.llama_child import needs_llama
from tests.lsp_client import ROOT
from tests.lsp_server.pulling import CONTENT, FILE, NAME, REPO, Home
from tests.services.ffm import FfmService
from tests.services.hub import Fault, Hub

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),  # with a window or two that are opened
    pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}"),
]

ADD = "def add(a, b):\n    return\n"
TITLE_BAR = 36  # pixels


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.files[f"{REPO}/{FILE}"] = CONTENT
        yield hub


@pytest.fixture(scope="module")
def editor(folder: Path, server_arguments: list[str], hub: Hub) -> Iterator[Vscode]:
    environ = {**Home(folder, hub).env(), KEY_ENV: KEY}
    with vscode(workspace(folder, "life"), server(folder, *server_arguments, environ=environ)) as editor:
        yield editor


def workspace(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir()
    return made


def test_a_killed_server_is_started_again(editor: Vscode, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    editor.attach(tmp_path / "first.py")
    kill_server(editor)
    editor.until(lambda: editor.answers() >= 0, "another one is ready")
    editor.attach(tmp_path / "again.py")
    editor.edit(tmp_path / "killed.py", ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.press("Tab")
    editor.becomes("def add(a, b):", "    return a + b", "")
    script(service, "")  # what is shown makes up for an end
    for _ in range(3):
        kill_server(editor)
        editor.until(lambda: editor.answers() >= 0, "another one is ready")
    kill_server(editor, last=True)
    editor.until(lambda: editor.notices("midfill: ") != [], "the message")
    (message,) = editor.notices("midfill: ")
    assert message == "midfill: the server ended 4 times in a row"
    assert editor.bar == "midfill: error, the server ended 4 times in a row"
    editor.run("Restart the Server")
    editor.until(lambda: editor.bar == "midfill: ready", "it is ready")


def kill_server(editor: Vscode, *, last: bool = False) -> None:
    (process,) = editor.servers()
    process.kill()
    editor.until(lambda: process not in editor.servers() and (last or len(editor.servers()) == 1), "VS Code knows")


def test_a_server_that_hangs_gives_way(editor: Vscode, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
    hangs.chmod(0o700)
    before = len(editor.notices())
    settings = json.loads((editor.data / "Machine" / "settings.json").read_text(encoding="utf-8"))
    editor.configure("Machine", {"midfill.server.command": str(hangs)})
    editor.until(lambda: editor.bar == "midfill: thinking, the server is starting", "it hangs")
    editor.until(lambda: "sleep" in programs(editor), "it runs")
    editor.configure("Machine", settings)
    editor.until(lambda: editor.bar == "midfill: ready", "another one is ready")
    editor.until(lambda: "sleep" not in programs(editor), "it is gone")
    editor.js("await Promise.all([1, 2, 3].map(() => vscode.commands.executeCommand('midfill.restart')))")
    editor.until(lambda: editor.bar == "midfill: ready", "it is ready")
    assert len(editor.servers()) == 1
    assert len(editor.notices()) == before


def programs(editor: Vscode) -> list[str]:
    """Names of what VS Code runs."""
    found = []
    for process in editor.process.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(process.name())
    return found


def test_a_model_comes_with_progress(editor: Vscode, hub: Hub, folder: Path) -> None:
    editor.until(lambda: editor.bar == "midfill: ready", "it is ready")
    hub.faults.append(Fault(after=1_500_000, hold=True))
    editor.run("Download a Model")
    editor.choose("Another one…")
    editor.until(lambda: editor.screen()["asked"] != "" and not editor.screen()["choices"], "the question")
    editor.type(NAME)
    editor.press("Enter")
    editor.until(lambda: any(NAME in text for text in editor.notices()), "the progress")
    editor.until(lambda: editor.bar.startswith(f"midfill: thinking, Downloading {NAME}"), "the status bar")
    hub.release()
    editor.until(lambda: f"midfill: the model {NAME} is here" in editor.notices(), "the message")
    found = Home(folder, hub).found()
    assert found is not None
    assert found.read_bytes() == CONTENT


def test_an_error_of_the_backend_is_told_once(
    editor: Vscode, folder: Path, server_arguments: list[str], tmp_path: Path
) -> None:
    editor.configure("Machine", server(folder, *server_arguments, environ={KEY_ENV: "wrong"}))
    editor.open(workspace(folder, "refused"))
    editor.edit(tmp_path / "one.py", ADD, (2, 10))

    editor.until(lambda: editor.bar == "midfill: ready", "it is ready")
    editor.ask()
    editor.until(lambda: editor.notices("midfill: ") != [], "the message")
    for typed in (" ", "(", "[", "{"):
        more = refused_more(editor)
        editor.type(typed)
        editor.until(more, "refused again")
    (message,) = editor.notices("midfill: ")
    assert "401" in message or "key" in message
    editor.until(lambda: editor.bar == message.replace("midfill: ", "midfill: error, "), "the status bar")


def test_a_missing_server_is_told_once_with_the_command_to_run(editor: Vscode, folder: Path, tmp_path: Path) -> None:
    editor.configure("Machine", {"midfill.server.command": str(tmp_path / "none")})
    editor.open(workspace(folder, "missing"))
    editor.until(lambda: editor.notices("midfill: ") != [], "the message")
    for name in ("one.py", "two.py"):
        editor.edit(tmp_path / name, "x\n", (1, 1))
    (message,) = editor.notices("midfill: ")
    told, _, command = message.partition("; in a clone of midfill run: ")
    assert told == f"midfill: the server is not installed ({tmp_path / 'none'} cannot be run)"
    assert command in ('pipx install ".[local]"', 'uv tool install ".[local]"')
    assert editor.bar == "midfill: error, the server is not installed"


@pytest.mark.model
@needs_llama
def test_the_embedded_model(editor: Vscode, folder: Path) -> None:
    """What the README shows; with TEST_PICTURES the picture is kept in that folder."""
    config = folder / "local.toml"
    config.write_text(LOCAL, encoding="utf-8")
    editor.configure("Machine", server(folder, "--config", str(config)))
    here = workspace(folder, "stock")
    editor.open(here)
    text = (ROOT / "examples" / "inventory.py").read_text(encoding="utf-8")
    file = here / "inventory.py"
    editor.edit(file, text, (24, 25))
    editor.until(lambda: editor.bar == "midfill: ready", "it is ready")
    editor.ask()
    editor.shows(".price * item.quantity")
    editor.until(lambda: editor.bar == "midfill: ready", "done")
    if pictures := os.environ.get("TEST_PICTURES"):
        editor.command("workbench.action.closeSidebar")
        editor.until(lambda: editor.in_front(file) and editor.ghost != "", "the text alone")
        editor.window.picture(Path(pictures) / "vscode.png", above=TITLE_BAR)
    editor.press("Tab")
    editor.until(lambda: editor.lines[23].endswith("item.price * item.quantity"), "the text")
    assert editor.save().decode() == text.replace("total += item\n", "total += item.price * item.quantity\n")
