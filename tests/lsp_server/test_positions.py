"""Columns against counting by hand, in all three encodings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.positions import Encoding, column_at, content_length, index_at
from tests.reference_text import units

UTF8, UTF16, UTF32 = Encoding.UTF8, Encoding.UTF16, Encoding.UTF32
contents = st.text(st.sampled_from("ab\t\f\v\x85\u2028é\u0301漢😀𝒳"), max_size=12)
endings = st.sampled_from(["", "\n", "\r", "\r\n"])


@pytest.mark.parametrize("encoding", list(Encoding))
@given(content=contents, ending=endings)
def test_every_column_and_index(encoding: Encoding, content: str, ending: str) -> None:
    line = content + ending
    column = 0
    for index, character in enumerate(content):
        assert column_at(line, index, encoding) == column
        for inside in range(units(character, encoding)):
            assert index_at(line, column + inside, encoding) == index
        column += units(character, encoding)
    for beyond in range(4):
        assert index_at(line, column + beyond, encoding) == len(content)
        assert column_at(line, len(content) + beyond, encoding) == column


@pytest.mark.parametrize(
    ("encoding", "columns"),
    [(UTF8, [0, 1, 3, 6, 10, 11]), (UTF16, [0, 1, 2, 3, 5, 6]), (UTF32, [0, 1, 2, 3, 4, 5])],
)
def test_widths(encoding: Encoding, columns: list[int]) -> None:
    assert [column_at("aé漢😀b\n", index, encoding) for index in range(6)] == columns


@pytest.mark.parametrize("encoding", list(Encoding))
def test_negative_is_zero(encoding: Encoding) -> None:
    assert index_at("é", -3, encoding) == 0
    assert column_at("é", -3, encoding) == 0


def test_both_units_of_neighbouring_pairs() -> None:
    assert [index_at("😀😀", column, UTF16) for column in range(6)] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("unit", ["😀", "é", "漢", "a😀", "é漢\x0c"])
def test_long_lines(unit: str, encoding: Encoding) -> None:
    line = unit * 200_000 + "\r\n"
    width = sum(units(character, encoding) for character in unit)
    for times in (1, 99_999, 200_000):
        assert index_at(line, times * width, encoding) == times * len(unit)
        assert column_at(line, times * len(unit), encoding) == times * width
    assert index_at(line, 2**31 - 1, encoding) == 200_000 * len(unit)


@pytest.mark.parametrize("encoding", list(Encoding))
def test_half_a_pair_is_one_character(encoding: Encoding) -> None:
    assert index_at("\ud83dx", column_at("\ud83dx", 1, encoding), encoding) == 1


@pytest.mark.parametrize(
    ("line", "length"),
    [("", 0), ("a", 1), ("a\n", 1), ("a\r", 1), ("a\r\n", 1), ("\n", 0), ("a\f", 2), ("a\u2028\n", 2)],
)
def test_content_length(line: str, length: int) -> None:
    assert content_length(line) == length


def test_values_are_those_of_the_protocol() -> None:
    assert [str(encoding) for encoding in Encoding] == ["utf-8", "utf-16", "utf-32"]
