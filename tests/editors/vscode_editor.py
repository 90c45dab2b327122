"""A real VS Code with the extension, driven by keys in a browser; what must come is awaited, never a time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil

from tests.editors.tap import tapped
from tests.editors.vscode_parts import builtin_extensions, code_server, extensions
from tests.editors.vscode_window import WAIT_S, Browser, Driver
from tests.lsp_client import ROOT, SERVE

LISTENS = re.compile(r"listening on (http://\S+?)/?\s")
# Nothing else pops up, and nothing is fetched.
SETTINGS: dict[str, Any] = {
    "chat.disableAIFeatures": True,
    "editor.cursorBlinking": "solid",
    "editor.hover.enabled": "off",
    "editor.fontFamily": "DejaVu Sans Mono, monospace",
    "editor.minimap.enabled": False,
    "editor.occurrencesHighlight": "off",
    "editor.parameterHints.enabled": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.stickyScroll.enabled": False,
    "editor.suggestOnTriggerCharacters": False,
    "editor.wordBasedSuggestions": "off",
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": False,
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",
    "remote.autoForwardPorts": False,
    "git.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "window.restoreWindows": "none",
    "workbench.activityBar.location": "hidden",
    "workbench.editor.enablePreview": False,
    "workbench.reduceMotion": "on",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "workbench.layoutControl.enabled": False,
}

ASK = "Alt+Backslash"
BAR = "midfill.midfill.midfill.status"
TEXT = "return vscode.window.activeTextEditor?.document.getText() ?? null"
# Within a function of JavaScript: showing a file again does not move the cursor.
SHOW = """
const document = await vscode.workspace.openTextDocument(given[0]);
const place = new vscode.Position(given[1] - 1, given[2]);
const options = { selection: new vscode.Range(place, place), preview: false, viewColumn: given[3] };
await vscode.window.showTextDocument(document, options);
"""
CLOSE = """
while (vscode.window.tabGroups.all.some((group) => group.tabs.length > 0)) {
  await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
}
"""


class Vscode:
    """One window. Keys are typed as a user does; the screen is what a user sees."""

    def __init__(self, window: Browser, driver: Driver, process: psutil.Popen, url: str, data: Path) -> None:
        self.window, self.driver, self.process, self.url, self.data = window, driver, process, url, data

    # Doing ------------------------------------------------------------------------------------------------------------

    def configure(self, place: str, settings: Mapping[str, Any]) -> None:
        """Write the settings of `User` or `Machine`, where those of the scope `machine` are in a remote window."""
        file = self.data / place / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings, indent=1), encoding="utf-8")

    def open(self, folder: Path) -> None:
        """A new window with this folder."""
        self.window.open(f"{self.url}/?folder={quote(str(folder))}")
        self.driver.accept()
        self.until(lambda: self.bar != "", "the status bar item")

    def attach(self, file: Path) -> None:
        """Wait until a suggestion can be asked for in a file; later ones can at once."""
        self.edit(file, "", (1, 0))
        self.until(lambda: self.bar.startswith("midfill: ready"), "the server is ready")

        def answered() -> bool:
            self.press(ASK)
            return self.answers() > 0

        self.until(answered, "an answer of the server")

    def ask(self) -> None:
        """Ask by hand, and wait until the server has answered, or something is shown: then VS Code need not ask."""
        before = self.answers()
        self.press(ASK)
        self.until(lambda: self.answers() > before or self.ghost != "", "an answer of the server")

    def press(self, *keys: str) -> None:
        """Keys as Playwright calls them: `Control+KeyS`, `ArrowLeft`."""
        for key in keys:
            self.window.press(key)

    def type(self, text: str) -> None:
        self.window.type(text)

    def js(self, body: str, given: Any = None) -> Any:
        """Run this where extensions run; `vscode` and `given` are known there."""
        return self.driver.run(body, given)

    def set(self, name: str, value: Any) -> None:
        """Change a setting of the user's, as the editor of settings does."""
        self.js("await vscode.workspace.getConfiguration().update(given[0], given[1], true)", [name, value])

    def command(self, name: str, *arguments: Any) -> Any:
        return self.js("return await vscode.commands.executeCommand(given[0], ...given[1])", [name, arguments])

    def run(self, title: str) -> None:
        """A command of the extension, as the user runs it: by its title."""
        self.press("F1")
        self.choose(f"midfill: {title}")

    def menu(self, entry: str) -> None:
        """An entry of the menu of the status bar item; then back to the text."""
        self.window.click(f"[id='{BAR}'] a")
        self.choose(entry)
        self.until(lambda: not self.screen()["choices"], "the menu is closed")
        self.command("workbench.action.focusActiveEditorGroup")

    def choose(self, entry: str) -> None:
        self.until(lambda: bool(self.screen()["choices"]), "something to choose from")
        self.type(entry)
        self.until(lambda: self.screen()["choices"][:1] == [entry], f"the entry {entry!r}")
        self.press("Enter")

    def edit(self, path: Path, content: str | bytes, at: tuple[int, int], group: int = 1) -> None:
        """Open a new file; the cursor is put before the character at (line from 1, UTF-16 column from 0)."""
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.show(path, at, group)

    def show(self, path: Path, at: tuple[int, int], group: int = 1) -> None:
        self.js(SHOW, [str(path), *at, group])
        self.until(lambda: self.in_front(path), "the file in front")

    def close_files(self) -> None:
        self.js(CLOSE)

    def save(self) -> bytes:
        """Save the file as the user does, return what is on the disk."""
        path = Path(self.js("return vscode.window.activeTextEditor.document.fileName"))
        self.press("Control+KeyS")
        self.until(lambda: path.read_bytes() == self.text.encode(), "the file is saved")
        return path.read_bytes()

    def undo(self) -> None:
        """Undo as the user does, and wait until something has changed."""
        before = self.text
        self.press("Control+KeyZ")
        self.until(lambda: self.text != before, "something is undone")

    # Seeing -----------------------------------------------------------------------------------------------------------

    def screen(self) -> dict[str, Any]:
        return self.window.screen()

    def in_front(self, path: Path) -> bool:
        screen = self.screen()
        return bool(screen["focused"]) and str(screen["title"]).startswith(path.name) and bool(screen["lines"])

    @property
    def ghost(self) -> str:
        return str(self.screen()["ghost"])

    @property
    def bar(self) -> str:
        """What the status bar says of midfill."""
        return str(self.screen()["bar"])

    def answers(self) -> int:
        """How many requests the server has answered, with whatever; -1: it does not run."""
        found = self.js("try { return await vscode.commands.executeCommand('midfill.status'); } catch { return null; }")
        return -1 if found is None else sum(found["counts"].values())

    def servers(self) -> list[psutil.Process]:
        """Running servers of midfill."""
        everything = self.process.children(recursive=True)
        return [each for each in everything if each.is_running() and _serves(each)]

    def notices(self, begin: str = "") -> list[str]:
        """Notifications that came up so far."""
        return [notice for notice in self.screen()["notices"] if notice.startswith(begin)]

    @property
    def text(self) -> str:
        return str(self.js(TEXT))

    @property
    def lines(self) -> list[str]:
        return re.split("\r?\n", self.text)

    @property
    def cursor(self) -> tuple[int, int]:
        """Line from 1, UTF-16 column from 0."""
        place = self.js("return vscode.window.activeTextEditor.selection.active")
        return place["line"] + 1, place["character"]

    def status(self) -> dict[str, Any]:
        """What the server counts."""
        found: dict[str, Any] = self.command("midfill.status")
        return found

    # Waiting ----------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > deadline:
                if pictures := os.environ.get("TEST_PICTURES"):
                    self.window.picture(Path(pictures) / "vscode-failed.png")
                raise AssertionError(f"never came: {what}\n{json.dumps(self.screen(), indent=1)}")
            time.sleep(0.03)  # between two looks

    def shows(self, ghost: str) -> None:
        """Wait until this is the ghost text, exactly."""
        self.until(lambda: self.ghost == ghost, f"the ghost text {ghost!r}")

    def becomes(self, *lines: str) -> None:
        """Wait until this is the text."""
        self.until(lambda: self.lines == list(lines), f"the text {lines}")


def _serves(process: psutil.Process) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:  # it has ended
        return False
    return list(command[1:4]) == list(SERVE[1:])


@contextlib.contextmanager
def running(folder: Path, environ: Mapping[str, str]) -> Iterator[tuple[psutil.Popen, str]]:
    """A code-server and its address."""
    arguments = ["--bind-addr", "127.0.0.1:0", "--auth", "none", "--disable-telemetry", "--disable-update-check"]
    arguments += ["--disable-getting-started-override", "--config", str(folder / "config.yaml")]
    arguments += ["--user-data-dir", str(folder / "data"), "--extensions-dir", str(extensions())]
    arguments += ["--vscode-option", f"builtin-extensions-dir={builtin_extensions()}"]
    log = folder / "code-server.log"
    with log.open("wb") as output:
        server = psutil.Popen(
            [*code_server(), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **environ},
            cwd=folder,
        )
    try:
        deadline = time.monotonic() + WAIT_S
        while not (found := LISTENS.search(log.read_text(encoding="utf-8"))):
            assert server.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield server, found[1]
    finally:
        family = [server, *server.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.terminate()
        _, left = psutil.wait_procs(family, timeout=10)
        for process in left:
            process.kill()
        psutil.wait_procs(left, timeout=10)


@contextlib.contextmanager
def vscode(workspace: Path, settings: Mapping[str, Any], user: Mapping[str, Any] | None = None) -> Iterator[Vscode]:
    """VS Code with nothing but the extension. `settings`: of the machine, `user`: of the user besides those above."""
    with contextlib.ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="midfill-"))  # short: it holds sockets
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        driver = Driver()
        stack.callback(driver.close)
        homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        (folder / "run").mkdir(mode=0o700)
        homes |= {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run"), "TEST_DRIVER_PORT": str(driver.port)}
        process, url = stack.enter_context(running(folder, {"PYTHONPATH": str(ROOT), **homes}))
        window = Browser()
        stack.callback(window.close)
        editor = Vscode(window, driver, process, url, folder / "data")
        editor.configure("User", {**SETTINGS, **(user or {})})
        editor.configure("Machine", settings)
        editor.open(workspace)
        yield editor


def server(
    folder: Path, *arguments: str, tap: Path | None = None, environ: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Settings: the real server with these arguments and this environment, as a program of its name in `folder`."""
    program = folder / "midfill"
    variables = [f"export {name}={shlex.quote(value)}\n" for name, value in (environ or {}).items()]
    command = shlex.join(tapped(tap, [*SERVE[:-1]]) if tap else SERVE[:-1])
    program.write_text(f'#!/bin/sh\n{"".join(variables)}exec {command} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return {"midfill.server.command": [str(program), "serve", *arguments]}
