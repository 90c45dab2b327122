"""The marker: exactly one on the wire, and the user's own ones come back unharmed."""

from __future__ import annotations

import logging
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from backends._fill_me import MARKER, MIN_PREFIX, MIN_SUFFIX, STAND_INS, AnswerText, place_marker
from backends.base import BackendRequest, InfillPrompt
from tests.services.ffm import FfmService

PIECES = st.lists(st.sampled_from(["<FILL", "_ME>", MARKER, *STAND_INS[:2], "<", "x\n", "line\n" * 300]), max_size=6)
TEXT = PIECES.map("".join)


@given(TEXT, TEXT)
def test_there_is_always_exactly_one_marker(prefix: str, suffix: str) -> None:
    inputs, stand_in = place_marker(prefix, suffix)
    assert inputs.count(MARKER) == 1
    before, after = inputs.split(MARKER)
    assert after
    # Mapped back, what is sent is an end of the prefix and a beginning of the suffix.
    if stand_in:
        before, after = before.replace(stand_in, MARKER), after.replace(stand_in, MARKER)
        assert len(stand_in) == len(MARKER)
    assert prefix.endswith(before)
    assert suffix.startswith(after) or (suffix == "" and after == "\n")


def test_text_without_a_marker_is_left_alone() -> None:
    assert place_marker("a = ", "\nb") == ("a = <FILL_ME>\nb", "")


def test_windows_end_at_markers_with_context_to_spare() -> None:
    rest, head = "x = 1\n" * MIN_PREFIX, "y = 2\n" * MIN_SUFFIX
    prefix, suffix = f"a\n'{MARKER}' # b\n{rest}", f"{head}c = '{MARKER}'\nd\n"
    assert place_marker(prefix, suffix) == (f"{rest}{MARKER}{head}", "")


def test_little_context_is_kept_with_a_stand_in() -> None:
    inputs, stand_in = place_marker(f"a '{MARKER}'\nb", "\n")
    assert (inputs, stand_in) == (f"a '<FILL-ME>'\nb{MARKER}\n", "<FILL-ME>")


def test_a_stand_in_that_stands_in_the_text_is_not_used() -> None:
    assert place_marker(f"'<FILL-ME>{MARKER}", "<FILL.ME>")[1] == "<FILL:ME>"


@given(st.lists(st.one_of(st.sampled_from(["<", "<FILL", "-ME>", "<FILL-ME>", "<FILL-M", "é"]), st.text()), max_size=8))
def test_stand_ins_are_mapped_back_however_they_are_split(parts: list[str]) -> None:
    answer = AnswerText("<FILL-ME>")
    got = "".join(answer.feed(part) for part in parts) + answer.feed("", last=True)
    assert got == "".join(parts).replace("<FILL-ME>", MARKER)


@given(st.lists(st.text(st.characters(codec=None, categories=["Cs", "Ll"])), max_size=6))
def test_surrogates_are_joined_or_replaced_however_they_are_split(parts: list[str]) -> None:
    answer = AnswerText()
    got = "".join(answer.feed(part) for part in parts) + answer.feed("", last=True)
    assert got == "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def test_nothing_is_held_back_without_need() -> None:
    assert AnswerText().feed("a <FILL-") == "a <FILL-"
    assert AnswerText("<FILL-ME>").feed("a <FILLED") == "a <FILLED"
    assert AnswerText("<FILL-ME>").feed("a <FILL-") == "a "


async def test_a_stand_in_is_said_in_the_log_without_source(
    ffm: FfmService, make_ffm: Any, collect: Any, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    await collect(make_ffm(ffm.url), BackendRequest(InfillPrompt(f"private = '{MARKER}'; ", "\n"), 8))
    assert "<FILL-ME> is sent in its place" in caplog.text
    assert "private" not in caplog.text
