"""VS Code with the extension against the real server: what is on the screen, and what is in the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.vscode_editor import Vscode, server, vscode
from tests.editors.vscode_parts import missing
from tests.services.ffm import FfmService

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),  # with a window or two that are opened
    pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}"),
]

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {
            "cell_type": "code",
            "id": "one",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": "a, b = 1, 2",
        },
        {"cell_type": "code", "id": "two", "metadata": {}, "execution_count": None, "outputs": [], "source": "c = "},
    ],
}
ADD = "def add(a, b):\n    return\n"


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str]) -> Iterator[Vscode]:
    workspace = folder / "workspace"
    workspace.mkdir()
    with vscode(workspace, server(folder, *server_arguments, environ={KEY_ENV: KEY})) as editor:
        editor.attach(workspace / "first.py")
        yield editor


@pytest.fixture
def editor(shared: Vscode, service: FfmService) -> Vscode:
    """One VS Code for all tests that leave it as it was; the server remembers nothing of the one before."""
    shared.close_files()
    shared.until(lambda: not shared.bar.startswith("midfill: thinking"), "nothing is under way")
    shared.command("midfill.clearCache")
    service.reset()
    return shared


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def test_ghost_text_and_accept(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    assert editor.screen()["lines"][1] == "    return a + b"
    assert editor.lines == ["def add(a, b):", "    return ", ""]
    editor.press("Tab")
    editor.becomes("def add(a, b):", "    return a + b", "")
    assert editor.cursor == (2, 16)
    assert editor.save() == b"def add(a, b):\n    return a + b\n"
    editor.until(lambda: editor.status()["accepted"] - before["accepted"] == 1, "the server knows")
    after = editor.status()
    assert after["displayed"] > before["displayed"]
    assert after["rejected"] == before["rejected"]


def test_accept_a_word_then_type_through_then_the_line(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b\n    # done")
    before = editor.status()
    editor.edit(file, "def add(a, b):\n    total =\n", (2, 11))
    editor.type(" ")
    editor.until(lambda: editor.ghost.startswith("a + b"), "the ghost text")
    shown = editor.ghost
    editor.press("Alt+KeyW")
    editor.until(lambda: editor.lines[1] == "    total = a", "the word")
    editor.shows(shown[1:])
    editor.type(" ")
    editor.shows(shown[2:])
    editor.press("Alt+KeyW")
    editor.until(lambda: editor.lines[1] == "    total = a + ", "the word")
    editor.shows(shown[4:])
    editor.press("Alt+KeyL")
    editor.until(lambda: editor.lines[1] == "    total = a + b", "the line")
    editor.until(lambda: editor.status()["partiallyAccepted"] - before["partiallyAccepted"] == 1, "the server knows")
    assert editor.status()["rejected"] == before["rejected"]


def test_what_is_typed_otherwise_or_dismissed_is_rejected(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.press("Escape")
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 1, "the server knows")
    assert editor.lines[1] == "    return "
    script(service, "c + d")
    editor.type("-")
    editor.shows("c + d")
    script(service, "")
    editor.type("x")
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 2, "the server knows")
    assert editor.save() == b"def add(a, b):\n    return -x\n"


def test_leaving_is_no_rejection(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.press("ArrowUp")
    editor.shows("")
    assert editor.status()["rejected"] == before


def test_a_request_is_cancelled(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b", hold_after=2)
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    until(service, generating=1)
    editor.until(lambda: editor.bar == "midfill: thinking", "the status bar")
    editor.type("z")
    until(service, disconnected=1)
    service.release()
    editor.until(lambda: editor.bar == "midfill: ready", "the status bar")


def test_undo_takes_the_suggestion_back_and_nothing_else(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b\n    # sum")
    editor.edit(file, "def add(a, b):\n    return\nprint(add(1, 2))\n", (2, 10))
    editor.type(" ")
    editor.until(lambda: editor.ghost.startswith("a + b"), "the ghost text")
    editor.press("Tab")
    editor.until(lambda: editor.lines[1] == "    return a + b", "the text")
    accepted = editor.lines
    editor.type("  # typed")
    editor.until(lambda: editor.text.count("typed") == 1, "typed on")
    while editor.lines != accepted:
        editor.undo()
    editor.undo()
    editor.becomes("def add(a, b):", "    return ", "print(add(1, 2))", "")
    editor.undo()
    editor.becomes("def add(a, b):", "    return", "print(add(1, 2))", "")


def test_non_ascii_line(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "größe + '😎'")
    text = "# 🙂\nnaïve = '😎é𠀀'; x ="
    editor.edit(file, text + "\n", (2, 20))
    editor.type(" ")
    editor.shows("größe + '😎'")
    editor.type("g")
    editor.shows("röße + '😎'")
    editor.press("Tab")
    editor.until(lambda: editor.lines[1].endswith("😎'"), "the text")
    assert editor.save().decode() == text + " größe + '😎'\n"


def test_crlf(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n    2,\n]")
    editor.edit(file, "x =\r\nprint(x)\r\n", (1, 3))
    editor.type(" ")
    editor.shows("[\n    1,\n    2,\n]")
    editor.press("Tab")
    editor.becomes("x = [", "    1,", "    2,", "]", "print(x)", "")
    assert editor.save() == b"x = [\r\n    1,\r\n    2,\r\n]\r\nprint(x)\r\n"


def test_tabs(editor: Vscode, service: FfmService, file: Path) -> None:
    path = file.with_suffix(".c")
    script(service, "f (a) {\n\t\tc = b;\n\t}")
    editor.edit(path, "int f(int a, int b)\n{\n\tint c = 0;\n\t\n\treturn c;\n}\n", (4, 1))
    editor.type("i")
    editor.until(lambda: editor.ghost.startswith("f (a) {"), "the ghost text")
    assert editor.screen()["lines"][3:6] == ["    if (a) {", "        c = b;", "    }"]
    editor.press("Tab")
    editor.until(lambda: len(editor.lines) == 9, "the text")
    assert editor.save() == b"int f(int a, int b)\n{\n\tint c = 0;\n\tif (a) {\n\t\tc = b;\n\t}\n\treturn c;\n}\n"


@pytest.mark.parametrize(("answer", "result"), [("a, b)", "foo(a, b)"), ("a).bar()", "foo(a).bar()")])
def test_a_bracket_that_was_closed_is_not_doubled(
    editor: Vscode, service: FfmService, file: Path, answer: str, result: str
) -> None:
    script(service, answer)
    editor.edit(file, "a, b = 1, 2\nfoo\n", (2, 3))
    editor.type("(")
    editor.until(lambda: editor.screen()["lines"][1] == result, "the suggestion around the bracket")
    assert editor.lines[1] == "foo()"
    editor.press("Alt+KeyW")
    editor.until(lambda: editor.lines[1] == "foo(a)", "a word")
    editor.until(lambda: editor.screen()["lines"][1] == result, "the rest around the bracket")
    editor.press("Tab")
    editor.until(lambda: editor.lines[1] == result, "the text")
    assert editor.save().decode() == f"a, b = 1, 2\n{result}\n"


def test_a_suggestion_that_begins_before_the_cursor(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "else:\n        return b")
    text = "def f(a, b):\n    if a:\n        return a\n        "
    editor.edit(file, text + "\n", (4, 8))
    editor.press("Alt+Backslash")
    editor.until(lambda: "else:" in editor.ghost, "the ghost text")
    editor.press("Tab")
    editor.until(lambda: len(editor.lines) == 6, "the text")
    assert editor.save() == b"def f(a, b):\n    if a:\n        return a\n    else:\n        return b\n"


def test_several_candidates(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b", "a - b", "a * b")
    editor.edit(file, "def add(a, b):\n    return \n", (2, 11))
    editor.press("Alt+Backslash")
    editor.until(lambda: editor.ghost != "", "the ghost text")
    first = editor.ghost
    editor.press("Alt+BracketRight")
    editor.until(lambda: editor.ghost not in ("", first), "the second one")
    second = editor.ghost
    editor.press("Alt+BracketLeft")
    editor.shows(first)
    editor.press("Alt+BracketRight")
    editor.shows(second)
    editor.press("Tab")
    editor.becomes("def add(a, b):", "    return " + second, "")


def test_two_files(editor: Vscode, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    editor.edit(one, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    script(service, "x - y")
    editor.edit(two, "def sub(x, y):\n    return \n", (2, 11), group=2)
    editor.press("Alt+Backslash")
    editor.shows("x - y")
    editor.press("Tab")
    editor.becomes("def sub(x, y):", "    return x - y", "")
    assert editor.save() == b"def sub(x, y):\n    return x - y\n"
    editor.command("workbench.action.focusFirstEditorGroup")
    editor.until(lambda: editor.in_front(one), "the first file")
    assert editor.save() == b"def add(a, b):\n    return \n"


def test_keys_do_what_they_did_where_nothing_is_shown(editor: Vscode, service: FfmService, file: Path) -> None:
    editor.edit(file, "x\n", (1, 1))
    editor.press("Tab")
    editor.type("y")
    editor.becomes("x   y", "")


def test_a_new_file(editor: Vscode, service: FfmService) -> None:
    script(service, "a + b")
    editor.js(
        """const document = await vscode.workspace.openTextDocument({ language: 'python', content: 'c = ' });
        await vscode.window.showTextDocument(document, { selection: new vscode.Range(0, 4, 0, 4) });"""
    )
    editor.until(lambda: editor.screen()["lines"] == ["c = "], "the new file")
    editor.press("Alt+Backslash")
    editor.shows("a + b")
    editor.press("Tab")
    editor.becomes("c = a + b")


def test_a_cell_of_a_notebook(editor: Vscode, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    path = tmp_path / "notebook.ipynb"
    path.write_text(json.dumps(NOTEBOOK), encoding="utf-8")
    editor.js(
        """const document = await vscode.workspace.openNotebookDocument(vscode.Uri.file(given));
        const range = new vscode.NotebookRange(1, 2);
        await vscode.window.showNotebookDocument(document, { selections: [range] });""",
        str(path),
    )
    editor.command("notebook.cell.edit")
    editor.until(lambda: editor.screen()["lines"] == ["c = "] and bool(editor.screen()["focused"]), "the cell")
    editor.press("Control+End", "Alt+Backslash")
    editor.shows("a + b")
    assert "a, b = 1, 2" in editor.command("midfill.explain")[0]["prompt"]
    editor.press("Tab")
    editor.becomes("c = a + b")


def test_switched_off_and_on_by_the_menu(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 10))
    editor.menu("Switch Suggestions Off")
    editor.until(lambda: editor.bar == "midfill: off, suggestions are switched off", "the status bar")
    editor.until(lambda: editor.in_front(file), "the file in front")
    editor.type(" ")
    editor.becomes("def add(a, b):", "    return ", "")
    editor.until(lambda: editor.status()["enabled"] is False, "the server knows")
    editor.press("Alt+Backslash")
    assert service.log == []
    editor.menu("Switch Suggestions On")
    editor.until(lambda: editor.bar == "midfill: ready", "the status bar")
    editor.until(lambda: editor.status()["enabled"] is True, "the server knows")
    editor.until(lambda: editor.in_front(file), "the file in front")
    before = editor.status()["rejected"]
    editor.press("Alt+Backslash")
    editor.shows("a + b")
    editor.command("midfill.toggleSuggestions")
    editor.shows("")
    editor.command("midfill.toggleSuggestions")
    editor.until(lambda: editor.bar == "midfill: ready", "the status bar")
    assert editor.status()["rejected"] == before


def test_a_language_is_switched_off_and_on(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 10))
    editor.menu("Switch Suggestions Off for python")
    editor.until(lambda: editor.bar == "midfill: off, suggestions are switched off for python", "the status bar")
    editor.until(lambda: editor.in_front(file), "the file in front")
    before = editor.status()["counts"]["disabled"]
    editor.type(" ")
    editor.until(lambda: editor.status()["counts"]["disabled"] > before, "the server knows")
    other = file.with_suffix(".c")
    editor.edit(other, "int c =\n", (1, 7))
    editor.until(lambda: editor.bar == "midfill: ready", "the status bar")
    editor.type(" ")
    editor.shows("a + b")
    editor.show(file, (2, 11))
    editor.run("Switch Suggestions Off or On for This Language")
    editor.until(lambda: editor.bar == "midfill: ready", "the status bar")
    editor.until(lambda: editor.in_front(file), "the file in front")

    def shown() -> bool:
        editor.ask()
        return editor.ghost != ""

    editor.until(shown, "a suggestion again")


def test_reason_and_prompt_of_the_last_request(editor: Vscode, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.menu("Show What Became of the Last Request")
    editor.until(lambda: "sent: " in editor.text, "the reason")
    assert "code.py lines 1 to 2" in editor.text
    editor.command("workbench.action.closeActiveEditor")
    editor.until(lambda: editor.in_front(file), "the file in front")
    editor.run("Show the Last Prompt")
    editor.until(lambda: editor.text.startswith("def add(a, b):"), "the prompt")
