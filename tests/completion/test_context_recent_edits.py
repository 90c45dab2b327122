"""Recent edits: found between two looks, as the code stands there now, and only those of the user."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from completion.context.base import Look, Snippet
from completion.context.leaves import leaves
from completion.context.recent_edits import EDITS, LINES, RecentEdits, changes
from completion.types import DocumentSnapshot
from lsp_server.documents import Documents
from lsp_server.edit import Edit
from lsp_server.lines import Lines
from tests.completion.context_tools import document, edited, look

NUMBERED = "".join(f"line_{number}\n" for number in range(400))


def numbered(name: str = "other.py") -> DocumentSnapshot:
    return document(name, Lines(NUMBERED))


def insert(before: DocumentSnapshot, line: int, text: str) -> DocumentSnapshot:
    return edited(before, Edit(text, (line, 0, line, 0)))


class Desk:
    """A source, the open documents, and what it finds for a cursor in another file."""

    def __init__(self, *documents: DocumentSnapshot) -> None:
        self.source = RecentEdits()
        self.documents = {each.uri: each for each in documents}
        self.snippets()

    def look(self) -> Look:
        return look("x = |\n", *self.documents.values())

    def snippets(self) -> list[Snippet]:
        return self.source.snippets(self.look())

    def insert(self, name: str, line: int, text: str) -> None:
        uri = f"file:///w/{name}"
        self.documents[uri] = insert(self.documents[uri], line, text)


def test_an_edit_is_shown_with_three_lines_around_it() -> None:
    desk = Desk(numbered())
    assert desk.snippets() == []
    desk.insert("other.py", 100, "new_line = 1\n")
    (snippet,) = desk.snippets()
    assert snippet.text == "line_97\nline_98\nline_99\nnew_line = 1\nline_100\nline_101\nline_102\n"
    assert (snippet.path, snippet.lines) == ("other.py", (97, 104))
    assert desk.snippets() == [snippet], "and again"


def test_a_key_in_a_line_counts_and_what_is_taken_out_does_not() -> None:
    desk = Desk(numbered())
    desk.documents["file:///w/other.py"] = edited(numbered(), Edit("", (100, 0, 110, 0)))
    assert desk.snippets() == []
    desk.insert("other.py", 50, "x")
    assert "xline_50\n" in desk.snippets()[0].text


def test_the_last_edit_comes_first_and_close_ones_are_one() -> None:
    desk = Desk(numbered("a.py"), numbered("b.py"))
    for name, line in (("a.py", 10), ("b.py", 20), ("a.py", 200)):
        desk.insert(name, line, "new\n")
        desk.snippets()
    order = [(each.path, each.lines[0] + 3) for each in desk.snippets()]
    assert order == [("a.py", 200), ("b.py", 20), ("a.py", 10)]
    desk.insert("b.py", 22, "newer\n")
    first, *rest = desk.snippets()
    assert (first.path, len(rest)) == ("b.py", 2)
    assert "new\nline_20\nnewer\n" in first.text


def test_places_move_with_edits_above_them() -> None:
    desk = Desk(numbered())
    desk.insert("other.py", 300, "below\n")
    desk.snippets()
    desk.insert("other.py", 10, "above\n" * 5)
    above, below = desk.snippets()
    assert (above.text.count("above\n"), below.lines) == (5, (302, 309))
    assert "below\n" in below.text


def test_a_long_edit_is_shown_by_its_end_and_a_longer_one_is_not_the_users() -> None:
    desk = Desk(numbered())
    desk.insert("other.py", 10, "".join(f"new_{number}\n" for number in range(50)))
    (snippet,) = desk.snippets()
    assert snippet.text == "".join(f"new_{number}\n" for number in range(40, 50))
    assert len(snippet.text.split("\n")) - 1 == LINES
    desk = Desk(numbered())
    desk.insert("other.py", 10, "pasted\n" * 500)
    assert desk.snippets() == []


def test_at_most_eight_are_shown_of_2000_code_points() -> None:
    desk = Desk(numbered())
    for number in range(12):
        desk.insert("other.py", number * 30, f"edit_{number} = '{'x' * 900}'\n")
        desk.snippets()
    shown = desk.snippets()
    assert [f"edit_{number} " in each.text for number, each in zip(range(11, -1, -1), shown, strict=False)] == [
        True
    ] * 8
    assert len(shown) == EDITS
    assert all(len(each.text) <= 2000 for each in shown)


def test_what_is_in_sight_is_not_shown() -> None:
    source, before = RecentEdits(), document("current.py", Lines(NUMBERED))
    source.snippets(look(before))
    after = insert(before, 50, "new\n")
    assert source.snippets(look(after, shown=(40, 60))) == []
    assert source.snippets(look(after, shown=(100, 200)))[0].lines == (47, 54)


def test_ignored_and_closed_documents_are_not_shown() -> None:
    desk = Desk(numbered())
    desk.insert("other.py", 10, "new\n")
    assert desk.snippets() != []
    asked = look("x|", *desk.documents.values(), ignored=lambda each: each.path == "other.py")
    assert desk.source.snippets(asked) == []
    desk.source.forget("file:///w/other.py")
    assert desk.snippets() == []


def test_what_was_edited_before_the_first_look_is_known_from_the_text_as_opened() -> None:
    documents = Documents()
    documents.open("file:///w/a.py", "python", 1, NUMBERED)
    documents.change("file:///w/a.py", 2, [Edit("new\n", (20, 0, 20, 0))])
    snapshot = documents.snapshot("file:///w/a.py")
    assert snapshot is not None
    (snippet,) = RecentEdits().snippets(look("x|", snapshot))
    assert "new\n" in snippet.text


def test_a_client_that_sends_whole_texts_makes_the_same_edits() -> None:
    desk = Desk(numbered())
    whole = NUMBERED.replace("line_100\n", "line_100\nnew\n")
    desk.documents["file:///w/other.py"] = document("other.py", Lines(whole))
    (snippet,) = desk.snippets()
    assert snippet.lines == (98, 105)


SOME = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=40)


@given(SOME, SOME, st.integers(0, 40), st.integers(0, 5))
def test_lines_outside_of_changes_are_those_of_before(old: list[str], new: list[str], first: int, height: int) -> None:
    before = Lines("".join(old), fanout=4)
    start = document("a.py", before)
    after = edited(start, Edit("".join(new), (first, 0, first + height, 0))).text
    was = [line for leaf in leaves(before) for line in leaf]
    now = [line for leaf in leaves(after) for line in leaf]
    shift, at = 0, 0
    for begin, end, by in [*changes(leaves(before), leaves(after)), (len(now), len(now), 0)]:
        assert now[at:begin] == was[at - shift : begin - shift]
        shift, at = shift + by, end
    assert len(now) - len(was) == shift
