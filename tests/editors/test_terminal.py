"""The terminal that editors are tested on, with real programs on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import psutil
import pytest

from tests.editors.terminal import Terminal, gone, missing_terminal, terminal
from tests.editors.terminal_screen import TerminalScreen

pytestmark = pytest.mark.skipif(missing_terminal() != "", reason=f"SKIPPED: {missing_terminal()}")

PYTHON = [sys.executable, "-S", "-c"]
# Takes keys one by one, tells each; `q` ends it.
ECHO = """
import os, sys, tty
tty.setraw(0)
os.write(1, sys.argv[1].encode().decode("unicode_escape").encode() + b"ready")
seen = b""
while (key := os.read(0, 1)) != b"q":
    seen += key
    os.write(1, b"\\x1b[2;1H" + repr(seen).encode() + b"\\x1b[K;")
"""


def screen(data: str, width: int = 12, height: int = 4) -> TerminalScreen:
    """What is seen after these bytes, however they are cut."""
    told: list[str] = []
    whole, cut = TerminalScreen(width, height, told.append), TerminalScreen(width, height, told.append)
    whole.feed(data.encode())
    for byte in data.encode():
        cut.feed(bytes([byte]))
    assert whole.lines() == cut.lines()
    assert whole.cursor == cut.cursor
    return whole


def answers(data: str) -> list[str]:
    told: list[str] = []
    TerminalScreen(12, 4, told.append).feed(data.encode())
    return told


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("aé|", 3),
        ("漢字|", 5),
        ("😎|", 3),
        ("e\u0301|", 2),
        ("漢\u0301|", 3),
        ("👩\u200d💻|", 5),  # joined, as wide as both: editors reckon so
        ("\u2764\ufe0f|", 2),
    ],
)
def test_characters_of_all_widths(text: str, cells: int) -> None:
    seen = screen(text)
    assert seen.text(0) == text
    assert seen.cursor == (0, cells)
    assert seen.row(0)[cells - 1].data == "|"


@pytest.mark.parametrize(
    ("sequence", "colour"),
    [
        ("32", "green"),
        ("92", "brightgreen"),
        ("38;5;244", "808080"),
        ("38;2;18;52;86", "123456"),
        ("1;38;5;244;3", "808080"),
    ],
)
def test_colours(sequence: str, colour: str) -> None:
    seen = screen(f"ab\x1b[{sequence}mcd\x1b[0me\r\n\x1b[{sequence}mf\x1b[Kg\x1b[39mh")
    assert seen.coloured(colour) == "cd\nfg"
    assert seen.lines()[:2] == ["abcde", "fgh"]


def test_what_is_erased_is_not_underlined() -> None:
    seen = screen("ab\x1b[4;44mc\x1b[Kd\x1b[0m")
    assert seen.having(lambda cell: cell.underscore) == "cd"
    assert seen.having(lambda cell: cell.bg == "blue") == "cd" + " " * 8


def test_scrolling_and_repeated_characters() -> None:
    assert screen("a\r\nb\r\nc\r\nd\x1b[1S").lines() == ["b", "c", "d", ""]
    assert screen("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[1T").lines() == ["a", "", "b", "d"]
    assert screen("x-\x1b[3b|").text(0) == "x----|"


@pytest.mark.parametrize(
    "sequence", ["\x1b[>4;2m", "\x1b[?4m", "\x1b[2 q", "\x1bP+q436f\x1b\\", "\x1b]0;title\x07", "\x1b[>1u"]
)
def test_what_is_not_drawn(sequence: str) -> None:
    seen = screen(f"a{sequence}b")
    assert seen.text(0) == "ab"
    assert seen.having(lambda cell: cell.underscore) == ""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>41;390;0c"),
        ("ab\x1b[6n", "\x1b[1;3R"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:1e1e/1e1e/1e1e\x07"),
        ("\x1b]10;?\x1b\\", "\x1b]10;rgb:d4d4/d4d4/d4d4\x1b\\"),
        ("\x1b[?12$p", "\x1b[?12;2$y"),
        ("\x1bP$q q\x1b\\", "\x1bP1$r2 q\x1b\\"),
        ("\x1bP+q436f\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1b[>4;2m\x1b[?4m", "\x1b[>4;2m"),
    ],
)
def test_questions_are_answered(question: str, answer: str) -> None:
    assert answers(question) == [answer]


def test_a_terminal_without_modified_keys_does_not_answer_for_them() -> None:
    told: list[str] = []
    TerminalScreen(12, 4, told.append, reports_keys=False).feed(b"\x1b[>4;2m\x1b[?4m\x1b[c")
    assert told == ["\x1b[?62;22c"]


def test_a_picture() -> None:
    drawn = screen("a<漢字\x1b[7m ok \x1b[0m\x1b[38;5;244mgrey").svg("A & B", rows=1)
    assert 'aria-label="A &amp; B"' in drawn
    assert ">a&lt;漢字</text>" in drawn
    assert 'x="14" y="27" textLength="48"' in drawn
    assert '<rect x="62" y="14" width="32" height="18" fill="#d4d4d4"/>' in drawn
    assert 'fill="#808080">gr' in drawn


def keys(press: Callable[[Terminal], None], *, asked: bool, reports: bool) -> str:
    with terminal([*PYTHON, ECHO, "\\x1b[>4;2m" if asked else ""], width=60, height=5, reports_keys=reports) as started:
        started.until(lambda: started.text(0) == "ready", "the program")
        press(started)
        started.type(".")
        started.until(lambda: started.text(1).endswith(".';"), "the keys")
        seen = started.text(1)[:-1]
        started.type("q")
        assert started.wait() == 0
    return seen


@pytest.mark.parametrize(
    ("asked", "reports", "seen"),
    [
        (False, True, r"b'a\x1bw\x1d.'"),
        (True, False, r"b'a\x1bw\x1d.'"),
        (True, True, r"b'a\x1b[27;3;119~\x1b[27;5;93~.'"),
    ],
)
def test_keys_with_alt_and_ctrl(asked: bool, reports: bool, seen: str) -> None:
    def press(started: Terminal) -> None:
        started.type("a")
        started.alt("w")
        started.control("]")

    assert keys(press, asked=asked, reports=reports) == seen


def test_the_terminal_controls_the_program_and_has_its_size() -> None:
    code = "import os; print(os.get_terminal_size(os.open('/dev/tty', os.O_RDWR)), os.environ['TERM'], flush=True)"
    with terminal([*PYTHON, code], width=70, height=5) as started:
        started.until(lambda: started.cursor[0] == 1, "the size")
        assert started.text(0) == "os.terminal_size(columns=70, lines=5) xterm-256color"


def test_children_of_children_end_with_it() -> None:
    code = "import subprocess as s; p = s.Popen(['sleep', '600'], start_new_session=True); print(p.pid, flush=True)"
    with terminal([*PYTHON, f"{code}; p.wait()"]) as started:
        started.until(lambda: started.cursor[0] == 1, "the child")
        child = psutil.Process(int(started.text(0)))
        assert not gone(child)
    assert gone(child)


def test_what_never_comes_is_told_with_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.editors.terminal.WAIT_S", 0.5)
    with (
        terminal([*PYTHON, ECHO, ""]) as started,
        pytest.raises(AssertionError, match=r"(?s)never came: that.*\|ready"),
    ):
        started.until(lambda: started.text(0) == "ready" and os.getpid() < 0, "that")


def test_an_early_end_is_told() -> None:
    with (
        terminal([*PYTHON, "print('bye')"]) as started,
        pytest.raises(AssertionError, match=r"(?s)ended before: that.*bye"),
    ):
        started.until(lambda: False, "that")
