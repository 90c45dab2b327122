"""The document store against a plain reference model, and each trap by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.types import DocumentSnapshot, Text
from lsp_server.documents import Document, Documents, Edit
from lsp_server.lines import Lines, _Branch, _Leaf, _Node
from lsp_server.positions import Encoding
from lsp_server.uris import Root
from tests.reference_text import ReferenceText

URI = "file:///work/a.py"
UTF8, UTF16, UTF32 = Encoding.UTF8, Encoding.UTF16, Encoding.UTF32
# VT, form feed, FS, NEL, U+2028 and U+2029 end no line in LSP
PIECES = [
    *"ab\n\r\t",
    "\r\n",
    "\n\n",
    "\v",
    "\f",
    "\x1c",
    "\x85",
    "\u2028",
    "\u2029",
    "é",
    "e\u0301",
    "漢",
    "😀",
    "👩\u200d👩",
]

texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
places = st.tuples(st.integers(-1, 20), st.integers(-1, 14))
edits = st.lists(st.tuples(places, places, texts), max_size=8)
encodings = st.sampled_from(list(Encoding))


def everything(lines: Text) -> str:
    return lines.slice(0, len(lines))


def agree(lines: Lines, reference: ReferenceText, encoding: Encoding) -> None:
    assert everything(lines) == reference.text
    assert len(lines) == len(reference.text)
    whole = [a + b for a, b in zip(reference.contents(), reference.endings(), strict=True)]
    assert [lines.line(number) for number in range(lines.line_count)] == whole
    for offset in range(-1, len(reference.text) + 2):
        assert lines.position_at(offset, encoding) == reference.position_at(offset, encoding)
    for number in range(-1, lines.line_count + 2):
        width = 4 * len(whole[number]) + 2 if 0 <= number < len(whole) else 2
        for column in range(-1, width):
            assert lines.offset_at(number, column, encoding) == reference.offset_at(number, column, encoding)


@settings(max_examples=150, deadline=None)
@given(texts, edits, encodings, st.sampled_from([2, 3, 4, 8, 64]), st.data())
def test_every_edit_agrees_with_the_reference(
    text: str,
    edits: list[tuple[tuple[int, int], tuple[int, int], str]],
    encoding: Encoding,
    fanout: int,
    data: st.DataObject,
) -> None:
    lines, reference = Lines(text, fanout=fanout), ReferenceText(text)
    agree(lines, reference, encoding)
    earlier: list[tuple[Lines, str]] = []
    for start, end, new in edits:
        earlier.append((lines, reference.text))
        lines = lines.replaced(start, end, new, encoding)
        reference.edit(start, end, new, encoding)
        agree(lines, reference, encoding)
        low, high = data.draw(st.tuples(st.integers(-2, 60), st.integers(-2, 60)))
        assert lines.slice(low, high) == reference.text[max(0, low) : max(0, high)]
    for snapshot, then in earlier:
        assert everything(snapshot) == then


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 60), st.integers(0, 90)), max_size=25))
def test_a_deep_tree_grows_and_shrinks_as_the_text_does(steps: list[tuple[int, int, int]]) -> None:
    lines = Lines("".join(f"line {n}\n" for n in range(300)), fanout=4)
    plain = everything(lines)
    for at, removed, added in steps:
        at = min(at, lines.line_count - 1)
        rows = plain.split("\n")
        end = min(at + removed, len(rows) - 1)
        new = "".join(f"new {n}\n" for n in range(added))
        lines = lines.replaced((at, 0), (end, 0), new, UTF16)
        plain = "\n".join(rows[:at] + new.split("\n")[:-1] + rows[end:])
        assert everything(lines) == plain
        assert lines.line_count == plain.count("\n") + 1
        middle = len(plain) // 2
        assert lines.slice(middle, middle + 30) == plain[middle : middle + 30]
        assert lines.position_at(middle, UTF16)[0] == plain.count("\n", 0, middle)


def test_deleting_all_leaves_one_empty_line() -> None:
    lines = Lines("x\n" * 10_000).replaced((0, 0), (10_000, 0), "", UTF16)
    assert (len(lines), lines.line_count, lines.line(0)) == (0, 1, "")
    assert lines.offset_at(0, 0, UTF16) == 0
    assert lines.position_at(0, UTF16) == (0, 0)


@pytest.mark.parametrize("other", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_other_separators_end_no_line(other: str) -> None:
    lines = Lines(f"a{other}\nb\nc")
    assert lines.line_count == 3
    assert everything(lines.replaced((2, 0), (2, 1), "CCC", UTF16)) == f"a{other}\nb\nCCC"


@pytest.mark.parametrize(
    ("before", "edit", "after", "rows"),
    [
        pytest.param("a\rb", (1, 0, 1, 0, "\n"), "a\r\nb", ["a\r\n", "b"], id="newline typed after a return"),
        pytest.param("a\rb\nc", (1, 0, 1, 1, ""), "a\r\nc", ["a\r\n", "c"], id="text between them deleted"),
        pytest.param("a\nb", (0, 1, 0, 1, "\r"), "a\r\nb", ["a\r\n", "b"], id="return typed before a newline"),
        pytest.param("a\r\nb", (0, 1, 1, 0, "\r"), "a\rb", ["a\r", "b"], id="ending replaced by a return"),
        pytest.param("\r\n", (0, 0, 0, 0, "\r"), "\r\r\n", ["\r", "\r\n", ""], id="return before a pair"),
        pytest.param("a\r", (1, 0, 1, 0, "\n"), "a\r\n", ["a\r\n", ""], id="at the end of the text"),
    ],
)
def test_pairs_made_and_broken(before: str, edit: tuple[int, int, int, int, str], after: str, rows: list[str]) -> None:
    for fanout in (2, 64):  # with 2 the lines are in different leaves
        lines = Lines(before, fanout=fanout).replaced(edit[:2], edit[2:4], edit[4], UTF16)
        assert everything(lines) == after
        assert [lines.line(n) for n in range(lines.line_count)] == rows


def test_empty_last_line() -> None:
    lines = Lines("a\n")
    assert lines.position_at(2, UTF16) == (1, 0)
    assert lines.offset_at(1, 0, UTF16) == 2
    assert everything(lines.replaced((1, 0), (1, 0), "b", UTF16)) == "a\nb"


def test_past_the_end_is_clamped() -> None:
    lines = Lines("abc\r\n😀")
    assert lines.offset_at(0, 99, UTF16) == 3  # before the line ending, not after it
    assert lines.offset_at(1, 99, UTF16) == 6
    assert lines.offset_at(7, 1, UTF16) == len(lines) == 6
    assert Lines("abc").offset_at(0, 10, UTF16) == 3


def test_middle_of_a_character_is_its_start() -> None:
    lines = Lines("x😀y")
    assert [lines.offset_at(0, column, UTF16) for column in range(5)] == [0, 1, 1, 2, 3]
    assert [lines.offset_at(0, column, UTF8) for column in range(7)] == [0, 1, 1, 1, 1, 2, 3]
    assert everything(lines.replaced((0, 2), (0, 3), "", UTF16)) == "xy"


def test_start_after_end_is_swapped() -> None:
    assert everything(Lines("abc\ndef").replaced((1, 2), (0, 1), "-", UTF16)) == "a-f"


def test_offset_inside_a_pair_is_the_end_of_the_content() -> None:
    assert Lines("ab\r\nc").position_at(3, UTF16) == (0, 2)


def test_half_pairs_become_replacement_characters_of_the_same_width() -> None:
    lines = Lines("a\ud83db").replaced((0, 3), (0, 3), "\ude00é", UTF16)
    assert everything(lines) == "a\ufffdb\ufffdé"
    assert lines.position_at(4, UTF16) == (0, 4)


@pytest.mark.parametrize("number", [-1, 2])
def test_no_such_line(number: int) -> None:
    with pytest.raises(IndexError):
        Lines("a\nb").line(number)


def test_an_edit_touches_few_leaves() -> None:
    lines = Lines("".join(f"{n}\n" for n in range(100_000)))
    for text in ("x", "\n", "a\n" * 50):
        edited = lines.replaced((50_000, 1), (50_000, 1), text, UTF16)
        assert len(set(map(id, leaves(edited))) - set(map(id, leaves(lines)))) <= 3


@pytest.mark.parametrize("last_first", [False, True])
def test_leaves_left_small_are_merged(last_first: bool) -> None:
    lines = Lines("x\n" * 1_000, fanout=8)
    for n in sorted((n for n in range(1_000) if n % 10), reverse=last_first):  # one line of ten is left
        at = n if last_first else n // 10 + 1
        lines = lines.replaced((at, 0), (at + 1, 0), "", UTF16)
    assert everything(lines) == "x\n" * 100
    assert min(leaf.count for leaf in leaves(lines)) > 2


def leaves(lines: Lines) -> list[_Leaf]:
    found: list[_Leaf] = []
    nodes: list[_Node] = [lines._root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, _Branch):
            nodes.extend(node.items)
        else:
            found.append(node)
    return found


def test_changes_are_applied_in_order_each_to_the_result_of_the_one_before() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "one\ntwo\n")
    document = documents.change(
        URI, 4, [Edit("zero\n", (0, 0, 0, 0)), Edit("ONE", (1, 0, 1, 3)), Edit("", (2, 0, 9, 0))]
    )
    assert document is documents.get(URI)
    assert document is not None
    assert (everything(document.lines), document.version) == ("zero\nONE\n", 4)


def test_a_change_without_range_replaces_all() -> None:
    documents = Documents()
    documents.open(URI, "python", 1, "old")
    documents.change(URI, 2, [Edit("x", (0, 0, 0, 0)), Edit("new\n"), Edit("!", (0, 3, 0, 3))])
    snapshot = documents.snapshot(URI)
    assert snapshot is not None
    assert everything(snapshot.text) == "new!\n"


@pytest.mark.parametrize(("encoding", "column"), [(UTF8, 5), (UTF16, 3), (UTF32, 2)])
def test_the_encoding_agreed_on_counts(encoding: Encoding, column: int) -> None:
    documents = Documents()
    documents.encoding = encoding
    documents.open(URI, "python", 1, "x😀y")
    document = documents.change(URI, 2, [Edit("-", (0, column, 0, column))])
    assert document is not None
    assert everything(document.lines) == "x😀-y"


def test_a_snapshot_is_isolated_from_later_edits() -> None:
    documents = Documents()
    documents.set_roots([Root("file:///work", "w")])
    documents.open(URI, "python", 7, "a")
    snapshot = documents.snapshot(URI)
    documents.change(URI, 8, [Edit("b", (0, 0, 0, 1))])
    assert isinstance(snapshot, DocumentSnapshot)
    assert (snapshot.uri, snapshot.language_id, snapshot.version, snapshot.path) == (URI, "python", 7, "a.py")
    assert everything(snapshot.text) == "a"


def order(documents: Documents) -> list[str]:
    return [document.uri for document in documents]


def test_most_recently_viewed_first() -> None:
    documents = Documents()
    for uri in "abc":
        documents.open(uri, "", 0, "")
    assert order(documents) == ["c", "b", "a"]
    documents.touch("a")
    assert order(documents) == ["a", "c", "b"]
    documents.change("b", 1, [])
    assert order(documents) == ["b", "a", "c"]
    documents.open("c", "", 0, "again")
    assert order(documents) == ["c", "b", "a"]
    documents.touch("unknown")
    assert documents.close("b") is not None
    assert order(documents) == ["c", "a"]


def test_documents_may_be_closed_while_iterating() -> None:
    documents = Documents()
    for uri in "abc":
        documents.open(uri, "", 0, "")
    for document in documents:
        documents.close(document.uri)
    assert len(documents) == 0


def test_what_is_not_open() -> None:
    documents = Documents()
    assert documents.get(URI) is None
    assert documents.snapshot(URI) is None
    assert documents.change(URI, 1, [Edit("x")]) is None
    assert documents.close(URI) is None
    assert URI not in documents


def test_folders_may_come_later_and_go() -> None:
    documents = Documents()
    document = documents.open("file:///work/src/a.py", "python", 1, "")
    assert placed(document) == (None, None)
    documents.set_roots([Root("file:///work", "w"), Root("file:///work/src", "s")])
    assert placed(document) == ("s", "a.py")
    documents.set_roots([Root("file:///work", "w")])
    assert placed(document) == ("w", "src/a.py")
    documents.set_roots([])
    assert placed(document) == (None, None)


def placed(document: Document) -> tuple[str | None, str | None]:
    return document.repo, document.path


def test_the_store_needs_no_lsp_library() -> None:
    code = "import sys, lsp_server.documents; sys.exit(bool({'pygls', 'lsprotocol'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_other_documents_are_the_same_object_until_one_of_them_changes() -> None:
    documents = Documents()
    for name in "abc":
        documents.open(f"file:///{name}", "python", 1, name)
    first = documents.others("file:///c", 9)
    assert [other.uri for other in first] == ["file:///b", "file:///a"]
    documents.change("file:///c", 2, [Edit("x", (0, 0, 0, 0))])
    documents.touch("file:///c")
    assert documents.others("file:///c", 9) is first
    documents.change("file:///a", 2, [Edit("x", (0, 0, 0, 0))])
    assert [(other.uri, other.version) for other in documents.others("file:///c", 9)] == [
        ("file:///a", 2),
        ("file:///b", 1),
    ]
    documents.close("file:///a")
    assert [other.uri for other in documents.others("file:///c", 9)] == ["file:///b"]
    assert [other.uri for other in documents.others("file:///b", 1)] == ["file:///c"]


@pytest.mark.parametrize(
    ("edit", "end"),
    [
        (Edit("ab", (3, 4, 3, 9)), (3, 6)),
        (Edit("", (3, 4, 5, 0)), (3, 4)),
        (Edit("x\r\n\U0001f642", (3, 4, 3, 4)), (4, 2)),
        (Edit("\n\r", (3, 4, 3, 4)), (5, 0)),
        (Edit("a\nbc"), (1, 2)),
    ],
)
def test_where_the_text_of_an_edit_ends(edit: Edit, end: tuple[int, int]) -> None:
    assert edit.end(Encoding.UTF16) == end


def _deleted(text: str, *edits: Edit) -> tuple[int, str] | None:
    document = Document("file:///a.py", "python", 1, text)
    for edit in edits:
        document.apply(edit, Encoding.UTF16)
    return document.deleted


def _edit(start: int, end: int, text: str = "") -> Edit:
    return Edit(text, (0, start, 0, end))


def test_what_was_only_taken_away_is_remembered() -> None:
    assert _deleted("x = abc", _edit(6, 7)) == (6, "c")
    assert _deleted("x = abc", _edit(6, 7), _edit(5, 6), _edit(4, 5)) == (4, "abc")  # backspace
    assert _deleted("x = abc", _edit(4, 5), _edit(4, 5)) == (4, "ab")  # the key for what follows
    assert _deleted("x = abc", _edit(7, 4)) == (4, "abc")  # ends in the wrong order
    assert _deleted("x = abc", _edit(0, 1), _edit(5, 6)) == (5, "c")  # another place
    assert _deleted("a\r\nb", Edit("", (0, 1, 1, 0))) == (1, "\r\n")
    assert _deleted("x = \U0001f600", _edit(4, 6)) == (4, "\U0001f600")
    assert _deleted("y" * 5000, _edit(0, 5000)) == (0, "y" * 2000)


def test_a_text_that_was_typed_or_replaced_is_no_deletion() -> None:
    assert _deleted("x = abc", _edit(6, 7), _edit(6, 6, "d")) is None
    assert _deleted("x = abc", _edit(4, 7, "new")) is None
    assert _deleted("x = abc", _edit(4, 7), Edit("all new")) is None
    assert _deleted("x = abc", _edit(3, 3)) is None
