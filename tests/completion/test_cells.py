"""Cells of scripts: an answer stays within its own, and only where the document has cells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from completion.cells import UntilCell, cell_mark
from completion.types import Completion, Window
from tests.completion.desk import Desk, reason


async def shown(answer: str, marked: str) -> str | None:
    outcome = await Desk(tuple(answer)).ask(marked)
    assert isinstance(outcome, Completion) or reason(outcome) is not None
    return outcome.text if isinstance(outcome, Completion) else None


@pytest.mark.parametrize("mark", ["# %%", "#%%", "#  %% Plot", "  # %%", "# %% [markdown]"])
async def test_an_answer_ends_before_the_next_cell(mark: str) -> None:
    assert await shown(f"load()\nb = a\n{mark}\nplot(b)\n", "# %%\na = ⟦|⟧\n") == "load()\nb = a"


async def test_an_answer_that_is_another_cell_is_none() -> None:
    assert await shown("# %%\nplot(b)\n", "# %%\na = 1\n⟦|⟧\n") is None
    assert await shown("\n# %%\nplot(b)\n", "# %%\na = 1⟦|⟧\n") is None


async def test_a_mark_that_the_user_began_is_completed() -> None:
    assert await shown("%% Plot\nplot(a)\n# %%\nb\n", "# %%\na = 1\n# ⟦|⟧\n") == "%% Plot"
    assert await shown(" Plot\n", "# %%\na = 1\n# %%⟦|⟧\n") == " Plot"


async def test_a_boundary_below_is_no_line_to_repeat() -> None:
    """The cell below begins as this one goes on: that is no duplicate, it stands in another cell."""
    assert await shown("b = a\n", "# %%\na = 1\n⟦|⟧\n\n# %%\nb = a\n") == "b = a"


async def test_without_cells_nothing_is_special() -> None:
    assert await shown("load()\n# %%\n", "a = ⟦|⟧\n") == "load()\n# %%"
    assert await shown("load()\n# %%\n", "a = '# %%'\na = ⟦|⟧\n") == "load()\n# %%"


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("python", "x\n# %%\n", True),
        ("r", "#%% Title\n", True),
        ("julia", "  # %%\n", True),
        ("javascript", "// %%\n", True),
        ("javascript", "# %%\n", False),
        ("python", "%%time\n", False),
        ("python", "'%%' # %%\n", False),
        ("latex", "%% section\n", False),
    ],
)
def test_marks_of_languages(language: str, text: str, found: bool) -> None:
    assert (cell_mark(Window(text, ""), language) is not None) == found
    assert (cell_mark(Window("", f"\n{text}"), language) is not None) == found


def test_the_rest_of_the_cursors_line_begins_no_line() -> None:
    assert cell_mark(Window("x = ", "# %%\n"), "python") is None
    assert cell_mark(Window("x = ", "1\n# %%\n"), "python") is not None


@given(st.text(alphabet="#% \nab", max_size=30), st.data(), st.sampled_from(["", "  ", "x"]))
def test_it_does_not_matter_how_the_text_comes(text: str, data: st.DataObject, lead: str) -> None:
    mark = cell_mark(Window("# %%\n", ""), "python")
    assert mark is not None
    whole, ended = UntilCell(mark, lead).feed(text, last=True)
    step, parts, at, done = UntilCell(mark, lead), "", 0, False
    while not done and at < len(text):
        more = data.draw(st.integers(1, len(text) - at))
        passed, done = step.feed(text[at : at + more], last=at + more == len(text))
        parts, at = parts + passed, at + more
    assert (parts, done) == (whole, ended)
    lines = (lead + text).split("\n")
    marks = [n for n, line in enumerate(lines) if mark.begins(line) and (n or not lead.strip())]
    assert ended == bool(marks)
    assert whole == (text if not marks else "\n".join([*lines[: marks[0]], ""])[len(lead) :])
