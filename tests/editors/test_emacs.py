"""Emacs with the package against the real server: what is on the screen, and what is in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.emacs_editor import Emacs, emacs, missing
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"
QUIT = "\x07"  # C-g
UNDO = "\x1f"  # C-_


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str]) -> Iterator[Emacs]:
    with emacs(folder / "emacs", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.edit(folder / "first.py", "", (1, 0))
        yield editor


@pytest.fixture
def editor(shared: Emacs, service: FfmService) -> Emacs:
    """One Emacs for all tests that leave it as it was; the server remembers nothing of the one before."""
    shared.eval(
        "(midfill--leave) (delete-other-windows) (electric-pair-mode -1)"
        '(midfill-connection-execute (midfill-server-connection) "midfill.clearCache" nil) t'
    )
    shared.shows("")
    shared.status()  # the server has taken all of this
    service.reset()
    return shared


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def test_ghost_text_and_accept(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    assert editor.terminal.text(1) == "    return a + b"
    editor.at((1, 11))
    assert editor.text() == "def add(a, b):\n    return \n"
    editor.type("\t")
    editor.becomes("def add(a, b):\n    return a + b\n")
    assert editor.eval("(current-column)") == 16
    assert editor.save() == b"def add(a, b):\n    return a + b\n"
    after = editor.status()
    assert after["accepted"] - before["accepted"] == 1
    assert after["displayed"] > before["displayed"]
    assert after["rejected"] == before["rejected"]


def test_accept_a_word_then_type_through_then_the_line(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "(a + b)\n    # done")
    before = editor.status()
    editor.edit(file, "def add(a, b):\n    total =\n", (2, 11))
    editor.type(" ")
    editor.until(lambda: editor.ghost.startswith("(a + b)"), "the ghost text")
    shown = editor.ghost
    editor.alt("f")
    editor.shows(shown[1:])
    editor.becomes("def add(a, b):\n    total = (\n")
    editor.type("a")
    editor.shows(shown[2:])
    editor.type(" ")
    editor.alt("f")
    editor.shows(shown[4:])
    editor.becomes("def add(a, b):\n    total = (a +\n")
    editor.alt("e")
    editor.becomes("def add(a, b):\n    total = (a + b)\n")
    after = editor.status()
    assert after["partiallyAccepted"] - before["partiallyAccepted"] == 1
    assert after["rejected"] == before["rejected"]


def test_typed_to_its_end_is_no_rejection(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "ab")
    before = editor.status()["rejected"]
    editor.edit(file, "x =\n", (1, 3))
    editor.type(" ")
    editor.shows("ab")
    script(service, "")
    editor.type("ab")
    editor.shows("")
    editor.becomes("x = ab\n")
    assert editor.status()["rejected"] == before


def test_what_is_typed_otherwise_or_dismissed_is_rejected(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    editor.type(QUIT)
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 1, "the server knows")
    assert editor.text() == "def add(a, b):\n    return \n"
    script(service, "c + d")
    editor.type("(")
    editor.shows("c + d")
    script(service, "")
    editor.type("x")
    editor.shows("")
    editor.until(lambda: editor.status()["rejected"] == before + 2, "the server knows")
    assert editor.save() == b"def add(a, b):\n    return (x\n"


def test_moving_away_is_no_rejection(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    asked = len(service.log)
    editor.type("\x10")  # C-p
    editor.shows("")
    assert editor.status()["rejected"] == before
    assert len(service.log) == asked, "moving around asks for nothing"


@pytest.mark.parametrize("keys", ["z", "\x10", QUIT])
def test_a_request_is_cancelled(editor: Emacs, service: FfmService, file: Path, keys: str) -> None:
    script(service, "a + b", hold_after=2)
    editor.edit(file, ADD, (2, 10))
    before = editor.status()["counts"]["cancelled"]
    editor.type(" ")
    until(service, generating=1)
    editor.until(lambda: "midfill…" in editor.mode_line, "the mode line")
    editor.type(keys)
    until(service, disconnected=1)
    editor.until(lambda: editor.status()["counts"]["cancelled"] > before, "the server knows")
    service.release()


def test_undo_takes_the_suggestion_back_and_nothing_else(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b\n    # sum")
    editor.edit(file, "def add(a, b):\n    return\nprint(add(1, 2))\n", (2, 10))
    editor.type(" ")
    editor.until(lambda: editor.ghost.startswith("a + b"), "the ghost text")
    editor.type("\t")
    editor.until(lambda: "return a + b" in editor.text(), "the text")
    accepted = editor.text()
    script(service, "")
    editor.type("  # typed")
    editor.until(lambda: "typed" in editor.text(), "typed on")
    editor.type(UNDO)
    editor.becomes(accepted)
    editor.type(UNDO)
    editor.becomes("def add(a, b):\n    return \nprint(add(1, 2))\n")
    editor.type(UNDO)
    editor.becomes("def add(a, b):\n    return\nprint(add(1, 2))\n")


def test_non_ascii_line(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "'größe 😎'")
    text = "# 🙂\nnaïve = '😎é𠀀'; x ="
    editor.edit(file, text + "\n", (2, len(text) - 4))
    editor.type(" ")
    editor.shows("'größe 😎'")
    editor.type("'g")
    editor.shows("röße 😎'")
    editor.type("\t")
    editor.until(lambda: editor.text().endswith("😎'\n"), "the text")
    assert editor.save().decode() == text + " 'größe 😎'\n"


def test_crlf(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n    2,\n]")
    editor.edit(file, "x =\r\nprint(x)\r\n", (1, 3))
    editor.type(" ")
    wanted = ["x = [", "    1,", "    2,", "]", "print(x)"]
    editor.until(lambda: editor.terminal.lines()[:5] == wanted, "the ghost text")
    editor.type("\t")
    editor.becomes("x = [\n    1,\n    2,\n]\nprint(x)\n")
    assert editor.save() == b"x = [\r\n    1,\r\n    2,\r\n]\r\nprint(x)\r\n"


def test_tabs(editor: Emacs, service: FfmService, file: Path) -> None:
    path = file.with_suffix(".c")
    editor.edit(path, "int f(int a, int b)\n{\n\tint c = 0;\n\t\n\treturn c;\n}\n", (4, 1))
    script(service, "f (a) {\n\t\tc = b;\n\t}")
    editor.type("i")
    editor.until(lambda: editor.terminal.text(5) == 8 * " " + "}", "the ghost text")
    assert editor.terminal.text(3) == 8 * " " + "if (a) {"
    assert editor.terminal.text(4) == 16 * " " + "c = b;"
    editor.type("\t")
    editor.until(lambda: "c = b" in editor.text(), "the text")
    assert editor.save() == b"int f(int a, int b)\n{\n\tint c = 0;\n\tif (a) {\n\t\tc = b;\n\t}\n\treturn c;\n}\n"


@pytest.mark.parametrize(("answer", "result"), [("a, b)", "foo(a, b)"), ("a).bar()", "foo(a).bar()")])
def test_a_bracket_that_was_closed_is_not_doubled(
    editor: Emacs, service: FfmService, file: Path, answer: str, result: str
) -> None:
    script(service, answer)
    editor.edit(file, "a, b = 1, 2\nfoo\n", (2, 3))
    editor.eval("(electric-pair-mode)")
    editor.type("(")
    editor.until(lambda: editor.terminal.text(1) == result, "the suggestion around the bracket")
    editor.at((1, 4))
    assert editor.text() == "a, b = 1, 2\nfoo()\n"
    editor.alt("f")
    editor.becomes("a, b = 1, 2\nfoo(a)\n")
    editor.until(lambda: editor.terminal.text(1) == result, "the rest around the bracket")
    editor.type("\t")
    editor.becomes(f"a, b = 1, 2\n{result}\n")
    assert editor.save().decode() == f"a, b = 1, 2\n{result}\n"


def test_a_suggestion_that_begins_before_the_cursor(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "else:\n        return b")
    editor.edit(file, "def f(a, b):\n    if a:\n        return a\n       \n", (4, 7))
    editor.type(" ")
    editor.until(lambda: "else:" in editor.ghost, "the ghost text")
    assert [editor.terminal.text(3), editor.terminal.text(4)] == ["    else:", "        return b"]
    editor.at((3, 8))
    editor.type("\t")
    editor.until(lambda: "else" in editor.text(), "the text")
    assert editor.save() == b"def f(a, b):\n    if a:\n        return a\n    else:\n        return b\n"


def test_several_candidates(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b", "a - b", "a * b")
    editor.edit(file, ADD, (2, 10))
    editor.type(" ")
    editor.until(lambda: editor.ghost != "", "the ghost text")
    first = editor.ghost
    editor.alt("n")
    editor.until(lambda: "(2/" in editor.terminal.text(1), "the second one")
    second = editor.ghost
    assert second != first
    editor.alt("p")
    editor.shows(first)
    editor.alt("n")
    editor.shows(second)
    editor.type("\t")
    editor.becomes(f"def add(a, b):\n    return {second}\n")


def test_asked_by_hand_at_the_end_of_a_file_without_line_end(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b\n\n\nprint(add(1, 2))")
    editor.edit(file, "def add(a, b):\n    return ", (2, 11))
    editor.eval("(display-line-numbers-mode) t")
    editor.type("\x03\\")  # C-c \
    editor.until(lambda: editor.ghost != "", "the ghost text")
    editor.at((1, 3 + 1 + 11))
    editor.type("\t")
    editor.until(lambda: "a + b" in editor.text(), "the text")
    assert editor.text().startswith("def add(a, b):\n    return a + b")


def test_two_files(editor: Emacs, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    editor.edit(one, ADD, (2, 10))
    editor.type(" ")
    editor.shows("a + b")
    script(service, "x - y")
    editor.type("\x182")  # C-x 2
    editor.edit(two, "def sub(x, y):\n    return\n", (2, 10))
    editor.shows("")
    editor.type(" ")
    editor.shows("x - y")
    editor.type("\t")
    editor.becomes("def sub(x, y):\n    return x - y\n")
    assert editor.save() == b"def sub(x, y):\n    return x - y\n"
    editor.type("\x18o")  # C-x o
    editor.until(lambda: editor.buffer_file() == str(one), "the other window")
    assert editor.save() == b"def add(a, b):\n    return \n"


def test_keys_do_what_they_did_where_nothing_is_shown(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "")
    editor.edit(file, "def f():\nx y\n", (2, 0))
    editor.type("\t")
    editor.becomes("def f():\n    x y\n")
    editor.alt("f")
    editor.type("!")
    editor.becomes("def f():\n    x! y\n")


def test_switched_off_and_on(editor: Emacs, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, "def only_here(a, b):\n    return\n", (2, 10))
    editor.eval("(call-interactively 'midfill-toggle) t")
    editor.until(lambda: "midfill-off" in editor.mode_line, "the mode line")
    editor.type(" ")
    editor.becomes("def only_here(a, b):\n    return \n")
    assert editor.status()["enabled"] is False
    assert not [seen for seen in service.log if "only_here" in str(seen.body)], "nobody was asked about this file"
    editor.eval("(call-interactively 'midfill-toggle) t")
    editor.type("\x03\\")
    editor.shows("a + b")
    editor.until(lambda: "midfill)" in editor.mode_line or "midfill " in editor.mode_line, "the mode line")
