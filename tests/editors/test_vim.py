"""Vim with the plugin against the real server: what is on the screen, and what is in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.vim_editor import BACKSPACE, ESC, LEFT, Vim, missing, vim
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str]) -> Iterator[Vim]:
    with vim(folder / "vim", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.edit(folder / "first.py", "", (1, 0))
        yield editor


@pytest.fixture
def editor(shared: Vim, service: FfmService) -> Vim:
    """One Vim for all tests that leave it as it was; the server remembers nothing of the one before."""
    service.reset()
    shared.normal()
    shared.shows("")
    shared.command("call midfill#server#Execute('midfill.clearCache', [])")
    shared.command("silent! only!")
    return shared


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def test_ghost_text_and_accept(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    assert editor.text(1) == "    return a + b"
    assert editor.lines == ["def add(a, b):", "    return "]
    editor.type("\t")
    editor.becomes("def add(a, b):", "    return a + b")
    assert editor.cursor == (2, 16)
    assert editor.save() == b"def add(a, b):\n    return a + b\n"
    after = editor.status()
    assert after["accepted"] - before["accepted"] == 1
    assert after["displayed"] > before["displayed"]
    assert after["rejected"] == before["rejected"]


def test_accept_a_word_then_type_through_then_the_line(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "(a + b)\n    # done")
    before = editor.status()
    editor.edit(file, "def add(a, b):\n    total =\n", (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost.startswith("(a + b)"), "the ghost text")
    shown = editor.ghost
    editor.alt("w")
    editor.shows(shown[1:])
    assert editor.lines[1] == "    total = ("
    editor.type("a")
    editor.shows(shown[2:])
    editor.type(" ")
    editor.alt("w")
    editor.shows(shown[4:])
    assert editor.lines[1] == "    total = (a +"
    editor.alt("l")
    editor.until(lambda: editor.lines[1] == "    total = (a + b)", "the line")
    after = editor.status()
    assert after["partiallyAccepted"] - before["partiallyAccepted"] == 1
    assert after["rejected"] == before["rejected"]


def test_what_is_typed_otherwise_or_dismissed_is_rejected(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.terminal.control("]")
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


@pytest.mark.parametrize("keys", [ESC, "\x03"])
def test_leaving_is_no_rejection(editor: Vim, service: FfmService, file: Path, keys: str) -> None:
    script(service, "a + b")
    before = editor.status()["rejected"]
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type(keys)
    editor.shows("")
    assert editor.status()["rejected"] == before


@pytest.mark.parametrize("keys", ["z", ESC, "\x03"])
def test_a_request_is_cancelled(editor: Vim, service: FfmService, file: Path, keys: str) -> None:
    script(service, "a + b", hold_after=2)
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    until(service, generating=1)
    assert editor.eval("midfill#Statusline()") == "midfill …"
    editor.type(keys)
    until(service, disconnected=1)
    service.release()


def test_undo_takes_the_suggestion_back_and_nothing_else(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b\n    # sum")
    editor.edit(file, "def add(a, b):\n    return\nprint(add(1, 2))\n", (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost.startswith("a + b"), "the ghost text")
    editor.type("\t")
    editor.until(lambda: editor.lines[1] == "    return a + b", "the text")
    accepted = editor.lines
    editor.type("  # typed" + ESC)
    editor.until(lambda: editor.mode == "n" and editor.lines != accepted, "typed on")
    editor.type("u")
    editor.becomes(*accepted)
    editor.type("u")
    editor.becomes("def add(a, b):", "    return ", "print(add(1, 2))")
    editor.type("u")
    editor.becomes("def add(a, b):", "    return", "print(add(1, 2))")


def test_non_ascii_line(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "'größe 😎'")
    text = "# 🙂\nnaïve = '😎é𠀀'; x ="
    editor.edit(file, text + "\n", (2, 0))
    editor.insert(" ")
    editor.shows("'größe 😎'")
    editor.type("'g")
    editor.shows("röße 😎'")
    editor.type("\t")
    editor.until(lambda: editor.lines[1].endswith("😎'"), "the text")
    assert editor.save().decode() == text + " 'größe 😎'\n"


def test_crlf(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n    2,\n]")
    editor.edit(file, "x =\r\nprint(x)\r\n", (1, 0))
    editor.insert(" ")
    editor.shows("[\n    1,\n    2,\n]")
    editor.type("\t")
    editor.becomes("x = [", "    1,", "    2,", "]", "print(x)")
    assert editor.save() == b"x = [\r\n    1,\r\n    2,\r\n]\r\nprint(x)\r\n"


def test_tabs(editor: Vim, service: FfmService, file: Path) -> None:
    path = file.with_suffix(".c")
    editor.edit(path, "int f(int a, int b)\n{\n\tint c = 0;\n\t\n\treturn c;\n}\n", (4, 0))
    script(service, "f (a) {\n\t\tc = b;\n\t}")
    editor.insert("i")
    editor.shows("f (a) {\n" + 16 * " " + "c = b;\n" + 8 * " " + "}")
    assert editor.text(4) == 16 * " " + "c = b;"
    editor.type("\t")
    editor.until(lambda: len(editor.lines) == 8, "the text")
    assert editor.save() == b"int f(int a, int b)\n{\n\tint c = 0;\n\tif (a) {\n\t\tc = b;\n\t}\n\treturn c;\n}\n"


@pytest.mark.parametrize(("answer", "result"), [("a, b)", "foo(a, b)"), ("a).bar()", "foo(a).bar()")])
def test_a_bracket_that_was_closed_is_not_doubled(
    editor: Vim, service: FfmService, file: Path, answer: str, result: str
) -> None:
    script(service, answer)
    editor.edit(file, "a, b = 1, 2\nfoo()\n", (2, 0))
    editor.type("A" + LEFT)
    editor.until(lambda: editor.text(1) == result, "the suggestion around the bracket")
    assert editor.lines[1] == "foo()"
    editor.alt("w")
    editor.until(lambda: editor.lines[1] == "foo(a)", "a word")
    editor.until(lambda: editor.text(1) == result, "the rest around the bracket")
    editor.type("\t")
    editor.until(lambda: editor.lines[1] == result, "the text")
    assert editor.save().decode() == f"a, b = 1, 2\n{result}\n"


def test_a_suggestion_that_begins_before_the_cursor(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "else:\n        return b")
    text = "def f(a, b):\n    if a:\n        return a\n        "
    editor.edit(file, text + "\n", (4, 0))
    editor.insert()
    editor.until(lambda: "else:" in editor.ghost, "the ghost text")
    assert [editor.text(3), editor.text(4)] == ["    else:", "        return b"]
    editor.type("\t")
    editor.until(lambda: len(editor.lines) == 5, "the text")
    assert editor.save() == b"def f(a, b):\n    if a:\n        return a\n    else:\n        return b\n"


def test_several_candidates(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b", "a - b", "a * b")
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.until(lambda: editor.ghost != "", "the ghost text")
    first = editor.ghost
    editor.alt("]")
    editor.until(lambda: "(2/" in editor.text(1), "the second one")
    second = editor.ghost
    assert second != first
    editor.alt("[")
    editor.shows(first)
    editor.alt("]")
    editor.shows(second)
    editor.type("\t")
    editor.becomes("def add(a, b):", "    return " + second)


def test_two_files(editor: Vim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    editor.edit(one, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type(ESC)
    editor.shows("")
    script(service, "x - y")
    editor.command("split")
    editor.edit(two, "def sub(x, y):\n    return\n", (2, 0))
    editor.insert(" ")
    editor.shows("x - y")
    editor.type("\t")
    editor.becomes("def sub(x, y):", "    return x - y")
    assert editor.save() == b"def sub(x, y):\n    return x - y\n"
    editor.command("wincmd p")
    assert editor.save() == b"def add(a, b):\n    return \n"


def test_keys_do_what_they_did_where_nothing_is_shown(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "")
    editor.edit(file, "x\n", (1, 0))
    editor.insert("\ty")
    editor.becomes("x\ty")


def test_switched_off_and_on(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    editor.command("Midfill toggle")
    assert editor.eval("midfill#Statusline()") == "midfill off"
    editor.insert(" ")
    editor.until(lambda: editor.lines[1] == "    return ", "typed")
    assert editor.status()["enabled"] is False
    assert service.log == []
    editor.type(ESC)
    editor.command("Midfill toggle")
    editor.insert("a" + BACKSPACE)
    editor.until(lambda: editor.mode == "i" and editor.cursor == (2, 11), "at the end of the line")
    editor.alt("\\")
    editor.shows("a + b")
    editor.until(lambda: editor.eval("midfill#Statusline()") == "midfill", "all is answered")


def test_no_flicker_while_the_suggestion_is_typed(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "alpha + beta")
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("alpha + beta")
    seen = [editor.ghost]

    def typed() -> bool:
        seen.append(editor.ghost)
        return editor.ghost == "beta"

    editor.type("alpha + ")
    editor.until(typed, "typed through")
    assert all(ghost != "" and "alpha + beta".endswith(ghost) for ghost in seen), seen


def test_nothing_is_shown_beside_the_popup_menu(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "aa + b")
    editor.edit(file, "aabb = aacc = 1\n\n", (2, 0))
    editor.insert("aa")
    editor.until(lambda: editor.ghost != "", "the ghost text")
    editor.type("\x0e")  # Ctrl-N
    editor.until(lambda: editor.eval("pumvisible()") == 1, "the menu")
    editor.shows("")
    editor.type("\x19")  # Ctrl-Y
    editor.until(lambda: editor.eval("pumvisible()") == 0 and editor.ghost != "", "the ghost text again")
    assert editor.lines[1] in ("aabb", "aacc")


def test_not_in_replace_mode_nor_for_one_command(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    editor.insert(" ")
    editor.shows("a + b")
    editor.type("\x1b[2~")  # the Insert key
    editor.until(lambda: editor.mode == "R", "Replace mode")
    editor.shows("")
    editor.type("\x1b[2~")
    editor.until(lambda: editor.mode == "i", "Insert mode")
    editor.shows("a + b")
    editor.type("\x0f")  # Ctrl-O
    editor.until(lambda: editor.mode == "niI", "one command")
    editor.shows("")
    editor.type(":\x1b")
    editor.until(lambda: editor.mode == "i", "Insert mode")
    editor.shows("a + b")


def test_further_lines_keep_to_the_window(editor: Vim, service: FfmService, file: Path) -> None:
    """Vim shows nothing of a line that does not fit: what does not is left out."""
    script(service, "[\n    1,\n    2,\n]")
    rows = editor.eval("winheight(0)")
    above = "\n" * (rows - 3)
    editor.edit(file, f"{above}x =\nprint(x)\n", (1, 0))
    editor.command("call cursor(line('$') - 1, 1)")
    editor.insert(" ")
    editor.shows("[\n    1,\n    2,")
    assert editor.text(rows - 3) == "x = [ …"
    assert editor.text(rows - 1) == "    2,"
    editor.type("\t")
    editor.until(lambda: editor.lines[-2:] == ["]", "print(x)"], "the text")


def test_what_stands_below_stays_below(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n]", "(2,)")
    editor.edit(file, "x =\nprint(x)\n", (1, 0))
    editor.insert(" ")
    editor.shows("[\n    1,\n]")
    assert [editor.text(row) for row in range(5)] == ["x = [", "    1,", "]", "print(x)", "~"]
    editor.type("(")
    editor.until(lambda: editor.text(1) == "print(x)", "the line below is back")
    editor.until(lambda: editor.text(0).startswith("x = ("), "typed on")


def test_text_behind_the_cursor_goes_to_the_end_of_the_last_line(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "\n    a,\n    b,\n")
    editor.edit(file, "foo()  # why\n", (1, 4))
    editor.type("i")
    editor.alt("\\")
    editor.until(lambda: "    a," in editor.ghost, "the ghost text")
    shown = [editor.text(row) for row in range(4)]
    script(service, "")
    editor.type("\t")
    editor.until(lambda: len(editor.lines) > 1, "the text")
    editor.shows("")
    assert shown[: len(editor.lines)] == editor.lines


def test_one_window_of_two(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n]")
    editor.edit(file, "x =\nprint(x)\n", (1, 0))
    editor.command("split")
    editor.insert(" ")
    editor.until(lambda: editor.ghost.endswith("[\n    1,\n]"), "the ghost text")
    editor.type("\t")
    editor.becomes("x = [", "    1,", "]", "print(x)")
    editor.until(lambda: "\n".join(editor.terminal.lines()).count("\nprint(x)\n") == 2, "both windows")
    editor.shows("")


def test_abbreviations_and_macros(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "")
    editor.edit(file, "x\n", (1, 0))
    editor.command("inoreabbrev teh the")
    editor.types("A teh\tx" + ESC)
    assert editor.lines == ["x the\tx"]
    script(service, "a + b")
    before = editor.status()["counts"]
    editor.types("qqA y")
    assert editor.status()["counts"] == before, "nothing is asked while a macro is recorded"
    editor.types("\t" + ESC + "q@q")
    assert editor.lines == ["x the\tx y\t y\t"]


def test_nothing_is_asked_with_paste(editor: Vim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    before = editor.status()["counts"]
    editor.command("set paste")
    editor.types("A (" + ESC)
    editor.command("set nopaste")
    assert editor.lines[1] == "    return ("
    assert editor.status()["counts"] == before
