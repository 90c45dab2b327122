"""The choice among snippets: budget, nothing twice, whole lines, order, and what stays from one choice to the next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.context.base import Look, Snippet
from completion.context.choice import Choice, choose
from completion.tokens import estimate_file
from completion.types import DocumentSnapshot
from tests.completion.context_tools import document, look

FILES = {
    name: [f"{name}_{number} = {number * 7919}" for number in range(200)] for name in ("first", "second", "current")
}


def text_of(name: str, first: int, end: int) -> str:
    return "".join(f"{line}\n" for line in FILES[name][first:end])


def documents() -> tuple[DocumentSnapshot, ...]:
    return tuple(document(name, text_of(name, 0, 200)) for name in ("first", "second"))


def asked(tokens: int = 2000, shown: tuple[int, int] = (90, 111)) -> Look:
    """The cursor is in line 100 of `current`."""
    before, after = text_of("current", 0, 100), text_of("current", 100, 200)
    made = look(f"{before}|{after}", *documents(), shown=shown, tokens=tokens)
    own = document("current", before + after)
    return replace(made, context=replace(made.context, document=own))


def snippet(name: str, first: int, end: int, score: float, source: str = "similar") -> Snippet:
    return Snippet(source, name, text_of(name, first, end), score, f"file:///w/{name}", (first, end))


def same(text: str) -> str:
    return text


def chosen(*found: Snippet, before: Choice | None = None, tokens: int = 2000) -> Choice:
    return choose(found, asked(tokens), same, before or Choice())


def places(choice: Choice) -> list[tuple[str, int, int]]:
    return [(piece.path, *piece.lines) for piece in choice.pieces]


def test_the_most_relevant_is_last_whatever_its_source() -> None:
    choice = chosen(snippet("first", 0, 5, 0.5), snippet("second", 0, 5, 0.9, "imports"), snippet("first", 50, 55, 0.1))
    assert places(choice) == [("first", 50, 55), ("first", 0, 5), ("second", 0, 5)]
    assert [piece.source for piece in choice.pieces] == ["similar", "similar", "imports"]
    assert choice.files[-1].text == text_of("second", 0, 5)


def test_what_does_not_fit_is_cut_and_less_is_left_out() -> None:
    good, poor = snippet("first", 0, 10, 0.9), snippet("second", 0, 100, 0.5)
    room = estimate_file("first", good.text)
    assert places(chosen(good, poor, tokens=room)) == [("first", 0, 10)]
    assert places(chosen(good, poor, tokens=room + 45)) == [("first", 0, 10)]
    (piece, _) = chosen(good, poor, tokens=room + 200).pieces
    assert piece.lines[0] == 0
    assert 10 < piece.lines[1] < 100
    assert 100 < piece.tokens <= 200


def test_lines_are_shown_once_and_neighbours_are_one_file() -> None:
    choice = chosen(snippet("first", 10, 30, 0.9), snippet("first", 20, 40, 0.5), snippet("first", 40, 45, 0.2))
    assert places(choice) == [("first", 10, 45)]
    assert choice.files[0].text == text_of("first", 10, 45)
    assert choice.pieces[0].score == 0.9


def test_what_surrounds_a_better_piece_is_shown_with_it() -> None:
    choice = chosen(snippet("first", 0, 60, 0.3), snippet("first", 20, 30, 0.8))
    assert places(choice) == [("first", 0, 60)]


def test_a_summary_is_not_merged_and_not_shown_beside_its_lines() -> None:
    summary = Snippet("imports", "first", "def first_1\n", 0.5, "file:///w/first", (0, 20))
    assert places(chosen(summary, snippet("first", 20, 30, 0.4))) == [("first", 20, 30), ("first", 0, 20)]
    assert places(chosen(summary, snippet("first", 10, 30, 0.9))) == [("first", 10, 30)]


def test_what_stands_in_the_window_is_left_out() -> None:
    assert sorted(places(chosen(snippet("current", 80, 120, 0.9)))) == [("current", 80, 90), ("current", 111, 120)]
    assert places(chosen(snippet("current", 95, 105, 0.9))) == []
    copy = replace(snippet("first", 0, 10, 0.9), text=text_of("current", 92, 102))
    assert places(chosen(copy)) == []
    partly = replace(copy, text=text_of("current", 86, 94) + text_of("first", 8, 10))
    assert places(chosen(partly)) != []


def test_copies_of_a_better_piece_are_left_out() -> None:
    copy = replace(snippet("second", 0, 10, 0.5), text=text_of("first", 0, 9) + text_of("second", 9, 10))
    assert places(chosen(snippet("first", 0, 10, 0.9), copy)) == [("first", 0, 10)]
    half = replace(copy, text=text_of("first", 0, 5) + text_of("second", 5, 10))
    assert len(places(chosen(snippet("first", 0, 10, 0.9), half))) == 2


def test_pieces_of_the_document_itself_are_told() -> None:
    assert chosen(snippet("current", 0, 10, 0.9)).own
    assert not chosen(snippet("first", 0, 10, 0.9)).own


def test_the_same_choice_is_the_same_files_in_the_same_order() -> None:
    before = chosen(snippet("first", 0, 5, 0.5), snippet("second", 0, 5, 0.6))
    after = chosen(snippet("first", 0, 5, 0.9), snippet("second", 0, 5, 0.2), before=before)
    assert all(old is new for old, new in zip(before.files, after.files, strict=True))


def test_new_pieces_stand_behind_those_worth_less_and_kept_ones_stay() -> None:
    before = chosen(snippet("first", 0, 5, 0.3), snippet("second", 0, 5, 0.6))
    found = (snippet("first", 0, 5, 0.3), snippet("second", 0, 5, 0.6), snippet("first", 50, 55, 0.9))
    assert places(chosen(*found, before=before)) == [("first", 0, 5), ("second", 0, 5), ("first", 50, 55)]
    poor = (*found[:2], snippet("first", 50, 55, 0.1))
    assert places(chosen(*poor, before=before)) == [("first", 50, 55), ("first", 0, 5), ("second", 0, 5)]


def test_about_the_same_window_is_what_was_shown_before() -> None:
    before = chosen(snippet("first", 10, 30, 0.5))
    assert places(chosen(snippet("first", 12, 33, 0.5), before=before)) == [("first", 10, 30)]
    assert places(chosen(snippet("first", 25, 45, 0.5), before=before)) == [("first", 25, 45)]
    edited = replace(before.snippets[0], text=text_of("second", 0, 20))
    stale = replace(before, snippets=(edited,))
    assert places(chosen(snippet("first", 12, 33, 0.5), before=stale)) == [("first", 12, 33)]


def test_a_little_better_is_not_enough_to_take_the_place_of_what_is_shown() -> None:
    room = estimate_file("second", text_of("second", 0, 5))
    before = chosen(snippet("first", 0, 5, 0.5), tokens=room)
    for score, expected in ((0.55, "first"), (0.8, "second")):
        found = (snippet("first", 0, 5, 0.5), snippet("second", 0, 5, score))
        assert [path for path, *_ in places(chosen(*found, before=before, tokens=room))] == [expected]


def test_a_secret_is_found_though_it_begins_and_ends_out_of_sight() -> None:
    def clean(text: str) -> str:
        begin, end = text.find("first_3 "), text.find("first_60 ")
        return text if min(begin, end) < 0 else text[:begin] + "x" * (end - begin) + text[end:]

    choice = choose([snippet("first", 20, 25, 0.9)], asked(), clean, Choice())
    assert set(choice.files[0].text) == {"x"}
    assert len(choice.files[0].text) == len(text_of("first", 20, 25))


def test_texts_are_cleaned_once() -> None:
    cleaned: list[str] = []

    def clean(text: str) -> str:
        cleaned.append(text)
        return text

    before = choose([snippet("first", 0, 5, 0.9)], asked(), clean, Choice())
    choose([snippet("first", 0, 5, 0.9), snippet("second", 0, 5, 0.5)], asked(), clean, before)
    assert len(cleaned) == 2


RANGES = st.tuples(
    st.sampled_from(sorted(FILES)), st.integers(0, 199), st.integers(1, 60), st.floats(0, 1), st.sampled_from("ab")
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(st.lists(RANGES, max_size=15), st.lists(RANGES, max_size=5), st.integers(0, 1500))
@settings(max_examples=25)
def test_whatever_is_found(
    newline: str,
    ranges: list[tuple[str, int, int, float, str]],
    more: list[tuple[str, int, int, float, str]],
    room: int,
) -> None:
    made = asked(room)
    others = tuple(document(name, text_of(name, 0, 200).replace("\n", newline)) for name in ("first", "second"))
    made = replace(made, context=replace(made.context, others=others))
    choice = Choice()
    for each in (ranges, [*ranges, *more]):
        found = [snippet(name, first, min(200, first + height), score, by) for name, first, height, score, by in each]
        choice = choose(found, made, same, choice)
        assert choice.tokens == sum(estimate_file(file.path, file.text) for file in choice.files) <= room
        seen: set[tuple[str, int]] = {("current", line) for line in range(*made.shown)}
        for file, piece in zip(choice.files, choice.pieces, strict=True):
            assert file.text == text_of(file.path, *piece.lines)
            lines = {(file.path, line) for line in range(*piece.lines)}
            assert lines
            assert not lines & seen
            seen |= lines
