"""Neovim with the plugin against the real server: what is on the screen, and what is in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.nvim_editor import Neovim, missing, neovim
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str]) -> Iterator[Neovim]:
    with neovim(folder / "nvim", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.edit(folder / "first.py", "", (1, 0))
        yield editor


@pytest.fixture
def editor(shared: Neovim, service: FfmService) -> Neovim:
    """One Neovim for all tests that leave it as it was; the server remembers nothing of the one before."""
    service.reset()
    shared.type("<Esc>")
    shared.until(lambda: shared.mode == "n", "Normal mode")
    shared.shows("")
    shared.lua("require('midfill.server').execute('midfill.clearCache', {})")
    shared.command("silent! only!")
    return shared


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def test_ghost_text_and_accept(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    assert editor.screen.text(1) == "    return a + b"
    assert editor.lines == ["def add(a, b):", "    return "]
    editor.type("<Tab>")
    editor.becomes("def add(a, b):", "    return a + b")
    assert editor.cursor == (2, 16)
    assert editor.save() == b"def add(a, b):\n    return a + b\n"
    after = editor.status()
    assert after["accepted"] - before["accepted"] == 1
    assert after["displayed"] > before["displayed"]
    assert after["rejected"] == before["rejected"]


def test_accept_a_word_then_type_through_then_the_line(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "(a + b)\n    # done")
    before = editor.status()
    editor.edit(file, "def add(a, b):\n    total =\n", (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost.startswith("(a + b)"), "the ghost text")
    shown = editor.ghost
    editor.type("<M-w>")
    editor.shows(shown[1:])
    assert editor.lines[1] == "    total = ("
    editor.type("a")
    editor.shows(shown[2:])
    editor.type(" <M-w>")
    editor.shows(shown[4:])
    assert editor.lines[1] == "    total = (a +"
    editor.type("<M-l>")
    editor.until(lambda: editor.lines[1] == "    total = (a + b)", "the line")
    after = editor.status()
    assert after["partiallyAccepted"] - before["partiallyAccepted"] == 1
    assert after["rejected"] == before["rejected"]


def test_what_is_typed_otherwise_or_dismissed_is_rejected(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type("<C-]>")
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 1, "the server knows")
    assert editor.lines[1] == "    return "
    script(service, "c + d")
    editor.type("(")
    editor.shows("c + d")
    script(service, "")
    editor.type("x")
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 2, "the server knows")
    assert editor.save() == b"def add(a, b):\n    return (x\n"


def test_leaving_is_no_rejection(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type("<Esc>")
    editor.shows("")
    assert editor.status()["rejected"] == before


@pytest.mark.parametrize("keys", ["z", "<Esc>"])
def test_a_request_is_cancelled(editor: Neovim, service: FfmService, file: Path, keys: str) -> None:
    script(service, "a + b", hold_after=2)
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    until(service, generating=1)
    assert editor.lua("return (require('midfill').status())") == "thinking"
    editor.type(keys)
    until(service, disconnected=1)
    service.release()


def test_undo_takes_the_suggestion_back_and_nothing_else(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b\n    # sum")
    editor.edit(file, "def add(a, b):\n    return\nprint(add(1, 2))\n", (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost.startswith("a + b"), "the ghost text")
    editor.type("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return a + b", "the text")
    accepted = editor.lines
    editor.type("  # typed<Esc>")
    editor.until(lambda: editor.mode == "n" and editor.lines != accepted, "typed on")
    editor.type("u")
    editor.becomes(*accepted)
    editor.type("u")
    editor.becomes("def add(a, b):", "    return ", "print(add(1, 2))")
    editor.type("u")
    editor.becomes("def add(a, b):", "    return", "print(add(1, 2))")


def test_non_ascii_line(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "'größe 😎'")
    text = "# 🙂\nnaïve = '😎é𠀀'; x ="
    editor.edit(file, text + "\n", (2, 0))
    editor.insert(" ")
    editor.shows("'größe 😎'")
    editor.type("'g")
    editor.shows("röße 😎'")
    editor.type("<Tab>")
    editor.until(lambda: editor.lines[1].endswith("😎'"), "the text")
    assert editor.save().decode() == text + " 'größe 😎'\n"


def test_crlf(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n    2,\n]")
    editor.edit(file, "x =\r\nprint(x)\r\n", (1, 0))
    editor.insert(" ")
    editor.shows("[\n    1,\n    2,\n]")
    editor.type("<Tab>")
    editor.becomes("x = [", "    1,", "    2,", "]", "print(x)")
    assert editor.save() == b"x = [\r\n    1,\r\n    2,\r\n]\r\nprint(x)\r\n"


def test_tabs(editor: Neovim, service: FfmService, file: Path) -> None:
    path = file.with_suffix(".c")
    editor.edit(path, "int f(int a, int b)\n{\n\tint c = 0;\n\t\n\treturn c;\n}\n", (4, 0))
    script(service, "f (a) {\n\t\tc = b;\n\t}")
    editor.insert("i")
    editor.shows("f (a) {\n" + 16 * " " + "c = b;\n" + 8 * " " + "}")
    assert editor.screen.text(4) == 16 * " " + "c = b;"
    editor.type("<Tab>")
    editor.until(lambda: len(editor.lines) == 8, "the text")
    assert editor.save() == b"int f(int a, int b)\n{\n\tint c = 0;\n\tif (a) {\n\t\tc = b;\n\t}\n\treturn c;\n}\n"


@pytest.mark.parametrize(("answer", "result"), [("a, b)", "foo(a, b)"), ("a).bar()", "foo(a).bar()")])
def test_a_bracket_that_was_closed_is_not_doubled(
    editor: Neovim, service: FfmService, file: Path, answer: str, result: str
) -> None:
    script(service, answer)
    editor.edit(file, "a, b = 1, 2\nfoo()\n", (2, 0))
    editor.type("A<Left>")
    editor.until(lambda: editor.screen.text(1) == result, "the suggestion around the bracket")
    assert editor.lines[1] == "foo()"
    editor.type("<M-w>")
    editor.until(lambda: editor.lines[1] == "foo(a)", "a word")
    editor.until(lambda: editor.screen.text(1) == result, "the rest around the bracket")
    editor.type("<Tab>")
    editor.until(lambda: editor.lines[1] == result, "the text")
    assert editor.save().decode() == f"a, b = 1, 2\n{result}\n"


def test_a_suggestion_that_begins_before_the_cursor(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "else:\n        return b")
    text = "def f(a, b):\n    if a:\n        return a\n        "
    editor.edit(file, text + "\n", (4, 0))
    editor.insert()
    editor.until(lambda: "else:" in editor.ghost, "the ghost text")
    assert [editor.screen.text(3), editor.screen.text(4)] == ["    else:", "        return b"]
    editor.type("<Tab>")
    editor.until(lambda: len(editor.lines) == 5, "the text")
    assert editor.save() == b"def f(a, b):\n    if a:\n        return a\n    else:\n        return b\n"


def test_several_candidates(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b", "a - b", "a * b")
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost != "", "the ghost text")
    first = editor.ghost
    editor.type("<M-]>")
    editor.until(lambda: "(2/" in editor.screen.text(1), "the second one")
    second = editor.ghost
    assert second != first
    editor.type("<M-[>")
    editor.shows(first)
    editor.type("<M-]>")
    editor.shows(second)
    editor.type("<Tab>")
    editor.becomes("def add(a, b):", "    return " + second)


def test_two_files(editor: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    editor.edit(one, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type("<Esc>")
    editor.shows("")
    script(service, "x - y")
    editor.command("split")
    editor.edit(two, "def sub(x, y):\n    return\n", (2, 0))
    editor.insert(" ")
    editor.shows("x - y")
    editor.type("<Tab>")
    editor.becomes("def sub(x, y):", "    return x - y")
    assert editor.save() == b"def sub(x, y):\n    return x - y\n"
    editor.command("wincmd p")
    assert editor.save() == b"def add(a, b):\n    return \n"


def test_keys_do_what_they_did_where_nothing_is_shown(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "")
    editor.edit(file, "x\n", (1, 0))
    editor.insert("<Tab>y")
    editor.becomes("x   y")


def test_switched_off_and_on(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    editor.command("Midfill toggle")
    assert editor.lua("return require('midfill').statusline()") == "midfill off"
    editor.insert(" ")
    editor.until(lambda: editor.lines[1] == "    return ", "typed")
    assert editor.status()["enabled"] is False
    assert service.log == []
    editor.type("<Esc>")
    editor.command("Midfill toggle")
    editor.insert("a<BS>")
    editor.until(lambda: editor.mode == "i" and editor.cursor == (2, 11), "at the end of the line")
    editor.lua("require('midfill').trigger()")
    editor.shows("a + b")
    assert editor.lua("return require('midfill').statusline()") == "midfill"
