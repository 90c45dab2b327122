"""How long an answer may become: the backend is stopped, and what is shown ends with a whole line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.postprocess.length import LONGEST, LONGEST_LINE
from completion.stopping import Cap
from completion.types import Completion, Reason, Trigger
from tests.completion.desk import Desk, reason


def words(length: int) -> str:
    """A line of so many characters that repeats nothing."""
    return "".join(f"w{number}." for number in range(length))[:length]


LINES = [f"{number:03}{words(96)}" for number in range(41)]


@pytest.mark.parametrize(
    ("language", "answer", "expected"),
    [
        ("python", words(400), words(400)),
        ("python", words(401), Reason.TOO_LONG),
        ("python", "a = 1\n" + words(401) + "\nc = 2\n", "a = 1"),
        ("python", "\n" + words(401), Reason.TOO_LONG),
        ("python", words(400) + "\n" + words(400), words(400) + "\n" + words(400)),
        ("python", "\n".join(LINES[:40]) + "\n", "\n".join(LINES[:40])),
        ("python", "\n".join(LINES[:40]) + "bb\n", "\n".join(LINES[:39])),
        ("markdown", words(4000), words(4000)),
        ("markdown", words(4001), Reason.TOO_LONG),
    ],
)
async def test_how_long_an_answer_may_be(language: str, answer: str, expected: str | Reason) -> None:
    outcome = await Desk([answer]).ask("⟦|⟧\n", language=language, trigger=Trigger.INVOKED)
    if isinstance(expected, Reason):
        assert reason(outcome) is expected
    else:
        assert isinstance(outcome, Completion)
        assert outcome.text == expected


async def test_the_backend_is_stopped() -> None:
    got: list[str] = []
    desk = Desk([f"([{number}, " for number in range(40_000)])
    assert reason(await desk.ask("x = ⟦|⟧\n", on_text=got.append)) is Reason.TOO_LONG
    assert len("".join(got)) == LONGEST_LINE + 1
    # The silence is kept, too: nobody asks again for the same.
    assert reason(await desk.ask("x = ⟦|⟧\n")) is Reason.TOO_LONG
    assert len(desk.backend.requests) == 1


async def test_many_short_lines_are_stopped_too() -> None:
    got: list[str] = []
    desk = Desk([f"{number:04}{words(46)}\n" for number in range(1000)], max_lines=1000)
    outcome = await desk.ask("⟦|⟧\n", on_text=got.append)
    assert isinstance(outcome, Completion)
    assert len(outcome.text) <= LONGEST < len("".join(got)) <= LONGEST + 1


@settings(deadline=None)  # a busy machine is no fault
@given(parts=st.lists(st.sampled_from(["a", "\n", "bcd", "", "e\nf"]), max_size=20), data=st.data())
def test_the_cap_does_not_depend_on_the_split(parts: list[str], data: st.DataObject) -> None:
    answer = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=6)))
    whole, ended = Cap(12, 5).feed(answer, last=True)
    cap, passed, stopped = Cap(12, 5), "", False
    for begin, end in zip([0, *cuts], [*cuts, len(answer)], strict=True):
        text, stopped = cap.feed(answer[begin:end], last=False)
        passed += text
        if stopped:
            break
    assert (passed, stopped) == (whole, ended)
