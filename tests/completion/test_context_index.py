"""The index of passages: what an edit has read again, and that it knows what a new one would."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from completion.context.index import Index, Passage
from completion.context.leaves import leaves
from completion.context.words import terms
from completion.types import DocumentSnapshot
from lsp_server.edit import Edit
from lsp_server.lines import Lines
from tests.completion.context_tools import document, edited, never

NOWHERE = Passage("", 0, 0)


class Budget:
    """Time for so many looks at the clock."""

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def ranked(
    index: Index, *wanted: str, worth: dict[str, float] | None = None, shown: Passage = NOWHERE
) -> list[Passage]:
    worth = worth or {f"file:///w/{name}": 1.0 for name in ("a.py", "b.py", "c.py")}
    return index.rank(index.weights(dict.fromkeys(wanted, 1.0)), worth, shown, 10)


def numbered(name: str, count: int) -> DocumentSnapshot:
    return document(name, Lines("".join(f"{name[0]}_line_{number}\n" for number in range(count))))


def test_the_passage_that_holds_the_rarest_terms_comes_first() -> None:
    index = Index()
    index.update(document("a.py", Lines("common rare\n")), never)
    index.update(document("b.py", Lines("common\n")), never)
    index.update(document("c.py", Lines("other\n")), never)
    assert [passage.uri[-4:] for passage in ranked(index, "common", "rare")] == ["a.py", "b.py"]
    assert ranked(index, "missing") == []


def test_places_are_counted_in_lines() -> None:
    index = Index()
    index.update(numbered("a.py", 500), never)
    (passage,) = ranked(index, "a_line_300")
    assert passage.first <= 300 < passage.end <= passage.first + 64


def test_what_is_shown_is_left_out() -> None:
    index = Index()
    index.update(numbered("a.py", 500), never)
    assert ranked(index, "a_line_300", shown=Passage("file:///w/a.py", 280, 320)) == []
    assert ranked(index, "a_line_300", shown=Passage("file:///w/a.py", 400, 420)) != []


def test_documents_count_what_they_are_worth_and_others_nothing() -> None:
    index = Index()
    for name in ("a.py", "b.py"):
        index.update(document(name, Lines("thing\n")), never)
    worth = {"file:///w/a.py": 0.5, "file:///w/b.py": 1.0}
    assert [passage.uri[-4:] for passage in ranked(index, "thing", worth=worth)] == ["b.py", "a.py"]
    assert [passage.uri[-4:] for passage in ranked(index, "thing", worth={"file:///w/a.py": 1.0})] == ["a.py"]


def test_what_is_late_is_read_the_next_time_and_ranked_only_then() -> None:
    index, long = Index(), numbered("a.py", 1000)
    assert not index.update(long, Budget(3))
    assert len(index) == 4
    assert ranked(index, "a_line_1") == []
    assert not index.update(long, Budget(3))
    assert len(index) == 8
    assert index.update(long, never)
    assert ranked(index, "a_line_1") != []


def test_an_edit_has_one_leaf_read_again() -> None:
    index, before = Index(), numbered("a.py", 1000)
    index.update(before, never)
    count, budget = len(index), Budget(100)
    after = edited(before, Edit("new_name", (500, 0, 500, 0)))
    assert index.update(after, budget)
    assert budget.left == 99
    assert len(index) == count
    assert ranked(index, "new_namea_line_500") != []
    assert ranked(index, "a_line_500") == []
    assert index.update(after, Budget(0)), "nothing was edited since"


def test_closed_documents_leave_nothing_behind() -> None:
    index = Index()
    index.update(numbered("a.py", 300), never)
    index.update(numbered("b.py", 300), never)
    index.forget("file:///w/a.py")
    assert ranked(index, "a_line_1") == []
    index.retain(set())
    assert len(index) == 0
    assert index._found == {}
    index.forget("file:///w/a.py")


LINES = st.lists(st.sampled_from(["alpha beta\n", "gamma_delta\n", "alpha\n", "\n", "epsilon zeta eta\n"]), max_size=30)
PLACE = st.tuples(st.integers(0, 30), st.integers(0, 10), st.integers(0, 6))


@given(LINES, st.lists(st.tuples(PLACE, LINES), max_size=6), st.integers(1, 4))
@settings(max_examples=60)
def test_after_any_edits_the_index_knows_what_a_new_one_would(
    lines: list[str], edits: list[tuple[tuple[int, int, int], list[str]]], patience: int
) -> None:
    index = Index()
    now = document("a.py", Lines("".join(lines), fanout=4))
    for (line, column, height), new in edits:
        index.update(now, Budget(patience))
        now = edited(now, Edit("".join(new), (line, column, line + height, 0)))
    assert index.update(now, never)
    fresh = Index()
    fresh.update(now, never)
    assert {term: len(slots) for term, slots in index._found.items()} == {
        term: len(slots) for term, slots in fresh._found.items()
    }
    parts = leaves(now.text)
    assert list(index.leaves_of(now.uri)) == list(parts)
    for slots in index._found.values():
        assert len(set(slots)) == len(slots)
    for term, slots in index._found.items():
        assert all(term in terms("".join(index._leaves[slot][1])) for slot in slots)
