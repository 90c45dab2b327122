"""The top of the file: shown where the window does not reach it, up to its imports."""

from __future__ import annotations

from completion.context.header import Header
from tests.completion.context_tools import look

TOP = '"""What for."""\n\nfrom __future__ import annotations\n\nimport os\nfrom a import (\n    b,\n)\n\nLIMIT = 1\n\n'
REST = "value = 1\n" * 300


def text(top: str, *, shown: tuple[int, int] = (250, 300), language: str = "python") -> str:
    found = Header().snippets(look(f"{top}{REST}x|", shown=shown, language=language))
    assert all(each.text == "\n".join((top + REST).split("\n")[each.lines[0] : each.lines[1]]) + "\n" for each in found)
    return "".join(each.text for each in found)


def test_documentation_and_imports_are_shown_to_the_end_of_the_last_one() -> None:
    assert text(TOP) == TOP[: TOP.index("\nLIMIT")]


def test_only_where_the_window_does_not_reach_it() -> None:
    assert text(TOP, shown=(0, 300)) == ""
    assert text(TOP, shown=(3, 300)) == TOP[: TOP.index("\nimport os")]


def test_other_languages_say_it_in_other_words() -> None:
    go = 'package main\n\nimport (\n\t"fmt"\n)\n\nfunc main() {\n'
    assert text(go, language="go") == go[: go.index("\nfunc")]
    c = "#include <stdio.h>\n#include <a.h>\n\nint x;\n"
    assert text(c, language="c") == c[: c.index("\nint")]
    js = "'use strict';\nconst a = require('a');\n\nlet b = 1;\n"
    assert text(js, language="javascript") == js[: js.index("\nlet")]


def test_a_licence_is_left_out_and_a_short_comment_is_not() -> None:
    assert text("# Licence\n" * 20 + TOP) == TOP[: TOP.index("\nLIMIT")]
    assert text("# What it is for\n" * 3 + "import os\n\n") == "# What it is for\n" * 3 + "import os\n"


def test_without_imports_the_first_block_is_shown() -> None:
    assert text("# Settings\nlimit = 1\n\nother = 2\n") == "# Settings\nlimit = 1\n"


def test_it_is_never_long() -> None:
    assert len(text("import os\n" * 400, shown=(500, 600)).split("\n")) == 41
    assert len(text(f"import {'a' * 150}\n" * 40)) <= 2000
