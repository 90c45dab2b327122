"""Documents as lines, whatever they are made of; and what code speaks of."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.context.leaves import leaves, line_at, lines_of
from completion.context.words import terms, terms_of
from completion.types import PlainText
from lsp_server.lines import Lines
from lsp_server.positions import Encoding

ANY = st.lists(st.sampled_from(["a", "b c", "\n", "\r", "\r\n", "\u2028", "\x0c", "é"]), max_size=60).map("".join)


def reference(text: str) -> list[str]:
    """Lines with their endings; what follows the last ending is one if it is not empty."""
    return [line for line in re.split(r"(?<=\r\n)|(?<=\n)|(?<=\r)(?!\n)", text) if line]


@given(ANY, st.integers(0, 40), st.integers(0, 40), st.integers(2, 8))
def test_trees_and_strings_have_the_same_lines(text: str, first: int, end: int, fanout: int) -> None:
    for each in (PlainText(text), Lines(text, fanout=fanout)):
        parts = leaves(each)
        assert [line for leaf in parts for line in leaf if line] == reference(text)
        assert [line for line in lines_of(parts, first, end) if line] == reference(text)[first:end]


@given(ANY, st.integers(0, 80))
def test_the_line_of_an_offset_is_that_of_positions(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    for each in (PlainText(text), Lines(text, fanout=3)):
        expected = reference(text[:offset] + "x")
        glued = text[offset - 1 : offset + 1] == "\r\n" if offset else False
        assert line_at(leaves(each), offset) == len(expected) - 1 - glued


def test_an_edit_leaves_all_other_leaves_the_same_objects() -> None:
    lines = Lines("value = 1\n" * 1000)
    before, after = lines.leaves(), lines.replaced((500, 0), (500, 0), "x", Encoding.UTF16).leaves()
    assert sum(a is not b for a, b in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("value", ("value",)),
        ("parse_header", ("parse_header", "parse", "header")),
        ("HTTPServer2", ("httpserver2", "http", "server")),
        ("getURL", ("geturl", "get", "url")),
        ("MAX_LINES", ("max_lines", "max", "lines")),
        ("größe_alt", ("größe_alt", "größe", "alt")),
        ("to_x", ("to_x",)),
    ],
)
def test_identifiers_are_split_where_their_words_begin(word: str, expected: tuple[str, ...]) -> None:
    assert terms_of(word) == expected


def test_numbers_and_the_shortest_names_say_nothing() -> None:
    assert terms("x = 12345 + i * 0xfff") == set()
    assert terms("a\nlimit") == {"limit"}
