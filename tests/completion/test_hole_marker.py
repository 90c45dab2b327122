"""The mark for a hole is one that no text holds."""

from __future__ import annotations

import pytest

from completion.prompt.chat import hole_marker


def test_a_mark_that_none_of_the_texts_holds() -> None:
    assert hole_marker(("a", "<HOLE", "HOLE/>")) == "<HOLE/>"
    assert hole_marker(("a <HOLE2/>", "b")) == "<HOLE/>"
    assert hole_marker(("a <HOLE/>", "b <HOLE3/>")) == "<HOLE2/>"
    assert hole_marker(iter(("a <HOLE/>", "b <HOLE2/>"))) == "<HOLE3/>"


@pytest.mark.timeout(60)  # many minutes, if the text was searched once for each mark
def test_a_text_full_of_marks() -> None:
    text = "".join(f"<HOLE{number}/>" for number in reversed(range(2, 150_000)))
    assert hole_marker((text, "<HOLE/>")) == "<HOLE150000/>"
