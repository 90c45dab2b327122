"""A suggestion fits the document as it is, or there is none."""

from __future__ import annotations

import pytest
from lsprotocol import types
from lsprotocol.converters import get_converter

from completion.types import Completion
from lsp_server.convert import completion_list, fitted, inline_list
from lsp_server.lines import Lines
from lsp_server.positions import Encoding

TEXT = "# \U0001f642\nf = \U0001f642 + )\nend"
OFFSET = TEXT.index(")")


def fit(now: str, *, text: str = "call(1))", end: int = 1, asked: str = TEXT) -> tuple[str, tuple[int, ...]] | None:
    """Fit a completion that replaces `end` characters after the cursor."""
    completion = Completion(text, OFFSET, OFFSET + end, "id")
    found = fitted(completion, OFFSET, Lines(asked), Lines(now), Encoding.UTF16)
    if found is None:
        return None
    at = found.range
    return found.text, (at.start.line, at.start.character, at.end.line, at.end.character)


def typed(text: str) -> str:
    return TEXT[:OFFSET] + text + TEXT[OFFSET:]


def test_same_text() -> None:
    assert fit(TEXT) == ("call(1))", (1, 9, 1, 10))


def test_beginning_typed_meanwhile() -> None:
    assert fit(typed("call")) == ("call(1))", (1, 9, 1, 14))


@pytest.mark.parametrize(
    "now",
    [
        typed("other"),
        typed("call(1))"),  # nothing is left to suggest
        typed("call\n"),
        typed("call\r"),
        TEXT.replace("f", "g"),
        TEXT.replace("end", "and"),
        TEXT[:-1],
        "",
        f"x{TEXT}",
    ],
)
def test_any_other_change(now: str) -> None:
    assert fit(now) is None


def test_typed_line_of_a_longer_suggestion_cannot_be_one_range() -> None:
    assert fit(typed("a\nb"), text="a\nb\nc", end=0) is None


@pytest.mark.parametrize("end", [6, 400])
def test_never_beyond_the_line_or_the_document(end: int) -> None:
    assert fit(TEXT, end=end) is None


def test_empty_answers_are_lists() -> None:
    assert inline_list(None) == {"items": []}
    assert completion_list(None).items == []


def test_the_inline_list_is_what_the_specification_says() -> None:
    converter = get_converter()
    found = fitted(Completion("call(1))", OFFSET, OFFSET + 1, "id"), OFFSET, Lines(TEXT), Lines(TEXT), Encoding.UTF16)
    listed = inline_list(found)
    structured = converter.structure(listed, types.InlineCompletionList)
    assert converter.unstructure(structured) == listed
    (item,) = structured.items
    assert found is not None
    assert (item.insert_text, item.range) == (found.text, found.range)


@pytest.mark.parametrize(
    ("text", "label"),
    [("one", "one"), ("\n    two\n    three", "two …"), ("x" * 100, "x" * 80 + " …"), ("  three\n", "three")],
)
def test_label_of_the_popup_menu(text: str, label: str) -> None:
    found = fitted(Completion(text, 0, 0, "id"), 0, Lines(""), Lines(""), Encoding.UTF16)
    (item,) = completion_list(found).items
    assert item.label == label
    assert item.text_edit is not None
    assert item.text_edit.new_text == item.filter_text == text
