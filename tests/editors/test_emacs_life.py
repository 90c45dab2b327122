"""Emacs with the package where something is missing, dies or refuses, as a package, and with the embedded model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.emacs_editor import HEIGHT, PACKAGE, Emacs, emacs, lisp, missing
from tests.editors.life import LOCAL, NOT_INSTALLED, children, refused_more, told
from tests.editors.terminal import gone
from tests.llama_child import needs_llama
from tests.lsp_client import ROOT
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"


def servers(editor: Emacs) -> list[psutil.Process]:
    return children(editor.eval("(emacs-pid)"))


@pytest.fixture(scope="module")
def packaged(folder: Path, server_arguments: list[str]) -> Iterator[Emacs]:
    """Installed by package.el, found by its autoloads."""
    init = f"(package-install-file {lisp(str(PACKAGE))})"
    with emacs(folder / "packaged", server=server_arguments, environ={KEY_ENV: KEY}, init=init, package=None) as editor:
        yield editor


def test_installed_as_a_package(packaged: Emacs, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    packaged.edit(tmp_path / "one.py", ADD, (2, 10))
    library = packaged.eval('(locate-library "midfill")')
    assert "/elpa/midfill-" in library
    assert library.endswith(".elc")
    assert packaged.eval("(fboundp 'midfill-eglot-setup)") is True
    packaged.type(" ")
    packaged.shows("a + b")
    packaged.type("\t")
    packaged.becomes("def add(a, b):\n    return a + b\n")


def test_who_asks_before_the_server_can_be_asked_gets_a_suggestion(
    packaged: Emacs, service: FfmService, tmp_path: Path
) -> None:
    script(service, "a + b")
    packaged.edit(tmp_path / "early.py", "def add(a, b):\n    return \n", (2, 11))
    packaged.eval("(progn (midfill-server-restart (midfill-server-connection)) (midfill-complete) t)")
    packaged.shows("a + b")


@pytest.mark.parametrize(
    ("command", "shown"), [("midfill-show-status", '"displayed"'), ("midfill-explain", '"reason"')]
)
def test_what_the_server_tells(packaged: Emacs, service: FfmService, tmp_path: Path, command: str, shown: str) -> None:
    script(service, "")
    packaged.edit(tmp_path / "told.py", ADD, (2, 10))
    before = packaged.status()["counts"]["empty"]
    packaged.type(" ")
    packaged.until(lambda: packaged.status()["counts"]["empty"] > before, "an answer")
    packaged.type(f"\x1bx{command}\r")
    packaged.until(lambda: packaged.eval('(and (get-buffer-window "*midfill*") t)'), "the answer in a window")
    assert shown in packaged.eval('(with-current-buffer "*midfill*" (buffer-string))')
    packaged.eval('(progn (kill-buffer "*midfill*") (delete-other-windows) t)')


def test_a_killed_server_is_started_again(packaged: Emacs, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    packaged.edit(tmp_path / "killed.py", ADD, (2, 10))
    kill_server(packaged)
    packaged.until(packaged.attached, "another one knows the file")
    packaged.type(" ")
    packaged.shows("a + b")
    packaged.type("\t")
    packaged.becomes("def add(a, b):\n    return a + b\n")
    assert packaged.eval("midfill-server--restarts") == 0, "it has worked"
    kill_server(packaged)
    packaged.until(packaged.attached, "another one knows the file")
    packaged.eval("(cl-incf midfill-server--restarts 2)")
    kill_server(packaged)
    packaged.until(lambda: any("4 times in a row" in each for each in packaged.messages()), "the message")
    packaged.until(lambda: "midfill!" in packaged.mode_line, "the mode line")
    packaged.type("\x1bxmidfill-restart\r")
    packaged.until(packaged.attached, "it knows the file")
    packaged.until(lambda: "midfill!" not in packaged.mode_line, "the mode line")
    (old,) = servers(packaged)
    packaged.type("\x1bxmidfill-restart\r")
    packaged.until(lambda: [each.pid for each in servers(packaged)] not in ([], [old.pid]) and gone(old), "a new one")
    packaged.until(packaged.attached, "it knows the file")
    log = packaged.eval('(with-current-buffer "*midfill log*" (buffer-string))')
    assert "backend work is ready" in log
    left = '(seq-count (lambda (each) (string-match-p "midfill.*stderr" (buffer-name each))) (buffer-list))'
    packaged.until(lambda: packaged.eval(left) == 1, "nothing is left of those that have ended")


def kill_server(editor: Emacs) -> None:
    editor.until(lambda: len(servers(editor)) == 1, "one server")
    (process,) = servers(editor)
    process.kill()
    editor.until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, "it is dead")
    number = f"(eql {process.pid} (process-id (car (slot-value midfill-server-own 'processes))))"
    editor.until(lambda: not editor.eval(f"(and midfill-server-own {number})"), "Emacs knows")


def test_an_error_of_the_backend_is_told_once(folder: Path, server_arguments: list[str], tmp_path: Path) -> None:
    with emacs(folder / "refused", server=server_arguments, environ={KEY_ENV: "wrong"}) as editor:
        editor.edit(tmp_path / "one.py", ADD, (2, 10))
        editor.type(" ")
        editor.until(lambda: told(editor) != [], "the message")
        for typed in "([{":
            more = refused_more(editor)
            editor.type(typed)
            editor.until(more, "refused again")
        (message,) = told(editor)
        assert "401" in message or "key" in message
        editor.until(lambda: "midfill!" in editor.mode_line, "the mode line")
        assert message in editor.eval("(get-text-property 1 'help-echo (midfill-mode-line))")


def test_a_missing_server_is_told_once_with_the_command_to_run(folder: Path, tmp_path: Path) -> None:
    copied = tmp_path / "package"
    shutil.copytree(PACKAGE, copied)
    init = "(setq exec-path nil)"
    with emacs(folder / "missing", init=init, package=copied) as editor:
        for name in ("one.py", "two.py"):
            (tmp_path / name).write_text("x\n")
            editor.visit(tmp_path / name)
        editor.type("y")
        editor.until(lambda: told(editor) != [], "the message")
        assert told(editor) == [NOT_INSTALLED]
        editor.until(lambda: "midfill!" in editor.mode_line, "the mode line")


@pytest.mark.model
@needs_llama
def test_the_embedded_model(folder: Path, tmp_path: Path) -> None:
    """What the README shows; with TEST_PICTURES the picture is kept in that folder."""
    config = folder / "local.toml"
    config.write_text(LOCAL, encoding="utf-8")
    after = """
    (set-face-attribute 'midfill-suggestion nil :inherit 'shadow :foreground 'unspecified)
    (global-font-lock-mode) (global-display-line-numbers-mode)
    """
    with emacs(folder / "local", server=["--config", str(config)], after=after) as editor:
        text = (ROOT / "examples" / "inventory.py").read_text(encoding="utf-8")
        editor.edit(tmp_path / "inventory.py", text, (24, 25))
        editor.type("\x03\\")  # C-c \
        editor.until(
            lambda: any(".price * item.quantity" in line for line in editor.terminal.lines()), "the ghost text"
        )
        editor.until(lambda: "midfill…" not in editor.mode_line, "done")
        if pictures := os.environ.get("TEST_PICTURES"):
            picture = editor.terminal.screen.svg("Emacs with a suggestion behind the cursor", HEIGHT - 1)
            (Path(pictures) / "emacs.svg").write_text(picture, encoding="utf-8")
        editor.type("\t")
        editor.until(lambda: "item.price * item.quantity\n" in editor.text(), "the text")
        assert editor.save().decode() == text.replace("total += item\n", "total += item.price * item.quantity\n")
