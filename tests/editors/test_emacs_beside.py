"""Emacs with the package beside eglot and lsp-mode, and over them; and what each of them says of itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors import tap
from tests.editors.emacs_editor import BARE, Emacs, emacs, lisp, missing
from tests.lsp_client import CLIENTS, SERVE
from tests.services.ffm import FfmService

OTHER = [sys.executable, str(Path(__file__).with_name("other_server.py"))]
LINE = "naïve = '😎é𠀀'; x ="
REDRAW = "\x0c"  # C-l; a command, so that what waits for one begins
INIT = """
(setq lsp-session-file {session} lsp-enable-file-watchers nil lsp-enable-snippet nil lsp-keymap-prefix "C-c l"
      lsp-headerline-breadcrumb-enable nil lsp-restart 'ignore eglot-sync-connect 30)
"""


@cache
def lacks(library: str) -> str:
    """Why a package cannot be tested with; empty if it can."""
    if missing():
        return missing()
    code = f"(progn (package-initialize) (kill-emacs (if (locate-library {lisp(library)}) 0 1)))"
    found = subprocess.run(["emacs", "--batch", *BARE, "--eval", code], capture_output=True, check=False)
    return "" if found.returncode == 0 else f"{library} is not installed for Emacs"


needs_eglot = pytest.mark.skipif(lacks("eglot") != "", reason=f"SKIPPED: {lacks('eglot')}")
needs_lsp_mode = pytest.mark.skipif(lacks("lsp-mode") != "", reason=f"SKIPPED: {lacks('lsp-mode')}")
needs_company = pytest.mark.skipif(lacks("company") != "", reason=f"SKIPPED: {lacks('company')}")
pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]


@pytest.fixture(scope="module")
def wire(folder: Path) -> Path:
    """What midfill's own connection sends."""
    return folder / "own.jsonl"


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str], wire: Path) -> Iterator[Emacs]:
    init = INIT.format(session=lisp(str(folder / "lsp-session")))
    command = tap.tapped(wire, [*SERVE, *server_arguments])
    with emacs(folder / "beside", command=command, environ={KEY_ENV: KEY}, init=init) as editor:
        yield editor


@pytest.fixture
def editor(shared: Emacs, service: FfmService) -> Emacs:
    service.reset()
    return shared


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that every package takes for a project, with settings of its own that nobody may take."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".dir-locals.el").write_text(
        "((nil . ((eglot-workspace-configuration . (:midfill (:languages (:python (:enabled :json-false))))))))"
    )
    return tmp_path


def connection(editor: Emacs) -> str:
    """The kind of connection that suggestions come over."""
    return str(editor.eval("(symbol-name (type-of (midfill-server-connection)))"))


def suggested_and_taken(editor: Emacs, service: FfmService, path: Path, before: str = "") -> None:
    """Behind characters that UTF-16 takes two units for; word by word, then the rest."""
    script(service, "'größe' + '😎'")
    prefix = before + LINE
    editor.eval(f"(erase-buffer) (insert {lisp(prefix)}) t")
    editor.type(" ")
    editor.until(lambda: "'größe' + '😎'" in editor.ghost, "the ghost text")
    before_it = editor.status()
    editor.alt("f")
    editor.becomes(f"{prefix} '")
    editor.type("g")
    editor.until(lambda: editor.ghost.startswith("röße"), "what is left")
    editor.type("\t")
    editor.becomes(f"{prefix} 'größe' + '😎'")
    after = editor.status()
    assert after["accepted"] - before_it["accepted"] == 1
    assert after["partiallyAccepted"] - before_it["partiallyAccepted"] == 1
    assert editor.save().decode() == f"{prefix} 'größe' + '😎'\n"
    script(service, "cc", hold_after=1)
    cancelled = editor.status()["counts"]["cancelled"]
    editor.type("\r")
    until(service, generating=1)
    editor.type("y")
    editor.until(lambda: editor.status()["counts"]["cancelled"] > cancelled, "the server was told of a cancel")
    service.release()


def initialize(wire: Path) -> dict[str, Any]:
    """What a client says of itself, without the paths and numbers of this run."""
    params: dict[str, Any] = tap.messages(wire, "initialize")[-1]["params"]
    root = params.get("rootPath") or (params.get("rootUri") or "").removeprefix("file://")
    text = json.dumps(params, ensure_ascii=False).replace(str(root).rstrip("/"), "/home/user/project")
    found: dict[str, Any] = json.loads(text)
    found["processId"] = None
    for each in found.get("workspaceFolders") or ():
        each["name"] = "project"
    if "clientInfo" in found:
        found["clientInfo"]["version"] = "28.2"
    return found


def recorded_as(name: str, found: dict[str, Any]) -> None:
    """The file that headless tests play this client with is what it says; with TEST_RECORD it is written."""
    file = CLIENTS / f"{name}.json"
    if os.environ.get("TEST_RECORD"):
        file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))


def recorded(editor: Emacs, library: str) -> bool:
    """Whether this is the version of a library that was recorded, such as `eglot-1.9`; others say other things."""
    name = library.rpartition("-")[0]
    return f"/{library}" in str(editor.eval(f"(locate-library {lisp(name)})"))


@needs_company
def test_beside_a_menu(editor: Emacs, service: FfmService, project: Path) -> None:
    script(service, "turn a + b")
    editor.eval("(require 'company) (setq company-backends '(company-dabbrev) company-minimum-prefix-length 2) t")
    file = project / "menu.py"
    editor.edit(file, "retort\nretreat\n\n", (3, 0))
    editor.eval("(company-mode) (setq company-idle-delay nil) t")
    editor.type("re")
    editor.shows("turn a + b")
    editor.eval("(setq company-idle-delay 0) t")  # it comes up by itself, over what is shown
    editor.type("t")
    editor.until(lambda: "retreat" in "".join(editor.terminal.lines()[3:9]), "the menu")
    editor.shows("")
    editor.type("\x07")
    editor.until(lambda: editor.ghost.startswith("urn"), "what is left, asked for again")
    assert "retreat" not in "".join(editor.terminal.lines()[3:9])
    editor.eval("(company-mode -1) t")


@needs_eglot
def test_beside_the_server_that_eglot_manages(editor: Emacs, service: FfmService, project: Path, wire: Path) -> None:
    editor.eval(f"(require 'eglot) (setq eglot-server-programs (list (cons 'python-mode {lisp(OTHER)}))) t")
    file = project / "beside.py"
    editor.edit(file, "", (1, 0))
    editor.eval("(eglot-ensure) t")
    editor.type(REDRAW)
    editor.until(lambda: editor.eval("(and (eglot-managed-p) t)"), "eglot")
    assert connection(editor) == "midfill-server"
    suggested_and_taken(editor, service, file)
    script(service, "")
    editor.type("\rotherw\x1b\t")  # C-M-i
    editor.until(lambda: "otherword_" in editor.text(), "what the other server knows")
    assert connection(editor) == "midfill-server"
    asked = {message["id"] for message in tap.messages(wire, "textDocument/inlineCompletion")}
    cancelled = {message["params"]["id"] for message in tap.messages(wire, "$/cancelRequest")}
    assert cancelled
    assert cancelled <= asked
    (focus, *_) = [message["params"] for message in tap.messages(wire, "textDocument/didFocus")][::-1]
    assert focus == {"textDocument": {"uri": file.as_uri()}}
    recorded_as("emacs-28-midfill", initialize(wire))


@needs_eglot
@pytest.mark.parametrize("how", ["set up", "by its command"])
def test_over_eglot(
    editor: Emacs, service: FfmService, project: Path, server_arguments: list[str], tmp_path: Path, how: str
) -> None:
    wire = tmp_path / "eglot.jsonl"
    command = lisp(tap.tapped(wire, [*SERVE, *server_arguments]))
    editor.eval("(require 'eglot) (setq eglot-server-programs nil midfill-eglot--modes nil) t")
    if how == "set up":
        editor.eval(f"(midfill-eglot-setup '(python-mode) {command}) t")
    else:
        editor.eval(f"(push (cons 'python-mode {command}) eglot-server-programs) t")
    file = project / "over.py"
    file.write_text("")
    editor.visit(file)
    editor.eval("(eglot-ensure) t")
    editor.type(REDRAW)
    editor.until(editor.attached, "midfill")
    editor.until(lambda: "eglot" in connection(editor), "the connection of eglot")
    assert connection(editor) == ("midfill-eglot-server" if how == "set up" else "eglot-lsp-server")
    suggested_and_taken(editor, service, file)
    found = initialize(wire)
    inline = found["capabilities"]["textDocument"].pop("inlineCompletion", None)
    assert inline == ({"dynamicRegistration": False} if how == "set up" else None)
    found["capabilities"]["textDocument"]["hover"]["contentFormat"] = ["markdown", "plaintext"]  # with markdown-mode
    if recorded(editor, "eglot-1.9"):
        recorded_as("emacs-28-eglot-1.9", found)
    answers = [message["result"] for message in tap.messages(wire) if "result" in message]
    assert [None] in answers, "asked for settings, and given none of the folder's"
    editor.eval("(eglot-shutdown (eglot-current-server)) t")


@needs_lsp_mode
def test_over_lsp_mode_beside_another_server(
    editor: Emacs, service: FfmService, project: Path, server_arguments: list[str], tmp_path: Path
) -> None:
    wire = tmp_path / "lsp.jsonl"
    command = tap.tapped(wire, [*SERVE, *server_arguments])
    editor.eval("(require 'lsp-mode) (setq midfill-eglot--modes nil) t")
    editor.eval(
        f"(midfill-lsp-setup '(python-mode) {lisp(command)})"
        "(lsp-register-client (make-lsp-client :server-id 'other :major-modes '(python-mode) :priority 9"
        f" :new-connection (lsp-stdio-connection '{lisp(OTHER).replace('(list ', '(')})))"
        f"(setq lsp-enabled-clients '(midfill other)) (lsp-workspace-folders-add {lisp(str(project))}) t"
    )
    file = project / "lsp.py"
    file.write_text("")
    editor.visit(file)
    editor.eval("(lsp) t")
    editor.until(lambda: connection(editor) == "midfill-lsp-connection", "the connection of lsp-mode")
    editor.until(lambda: editor.eval("(length (lsp-workspaces))") == 2, "the other server")
    suggested_and_taken(editor, service, file)
    script(service, "")
    asked = len(service.log)
    editor.type("\rotherw\x1b\t")
    editor.until(lambda: "otherword_" in editor.text(), "what the other server knows")
    assert not tap.messages(wire, "textDocument/completion"), "midfill is not asked for the menu"
    assert len(service.log) >= asked
    if recorded(editor, "lsp-mode-8.0"):
        recorded_as("emacs-28-lsp-mode-8.0", initialize(wire))
