"""The window: budgets, cuts at line starts, the anchor that stays, and how little of a document is read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion.context.window import Windows
from completion.tokens import estimate
from completion.types import DocumentSnapshot, PlainText, Text, Window

TOKENS, SUFFIX_TOKENS = 1000, 200


class CountingText:
    """Text that knows how much of it was read."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.read = 0

    def __len__(self) -> int:
        return len(self._text)

    def slice(self, start: int, end: int) -> str:
        part = self._text[max(0, start) : max(0, end)]
        self.read += len(part)
        return part


def document(text: Text) -> DocumentSnapshot:
    return DocumentSnapshot("file:///a", "python", 1, text)


def cut(windows: Windows, text: str, offset: int, *, tokens: int = TOKENS, suffix: int = SUFFIX_TOKENS) -> Window:
    return windows.cut(document(PlainText(text)), (offset, offset), "", tokens=tokens, suffix_tokens=suffix)


def numbered(count: int) -> str:
    return "".join(f"line_{number:05} = {number}\n" for number in range(count))


def test_a_small_document_is_seen_whole() -> None:
    window = cut(Windows(), "a\r\nb\rc", 3)
    assert window == Window("a\n", "b\nc", 0, "\r\n")


def test_both_ends_are_cut_at_line_starts_within_the_budget() -> None:
    text = numbered(2000)
    window = cut(Windows(), text, len(text) // 2)
    assert window.start > 0
    assert text[window.start - 1] == "\n"
    assert window.suffix.endswith("\n")
    assert estimate(window.suffix) <= SUFFIX_TOKENS
    assert TOKENS * 0.6 <= estimate(window.prefix) + estimate(window.suffix) <= TOKENS
    assert text.startswith(window.prefix + window.suffix, window.start)


def test_what_the_suffix_leaves_goes_to_the_prefix() -> None:
    text = numbered(2000)
    middle, end = cut(Windows(), text, len(text) // 2), cut(Windows(), text, len(text))
    assert len(end.prefix) > len(middle.prefix)


def test_a_giant_line_is_cut_inside() -> None:
    text = "x" * 5_000_000
    window = cut(Windows(), text, 2_500_000)
    assert 0.6 * TOKENS <= estimate(window.prefix + window.suffix) <= TOKENS
    assert 0.5 * SUFFIX_TOKENS <= estimate(window.suffix) <= SUFFIX_TOKENS


def test_only_text_near_the_cursor_is_read() -> None:
    windows = Windows()
    text = numbered(100_000)
    for step in range(3):
        counting = CountingText(text[: len(text) // 2] + "a" * step + text[len(text) // 2 :])
        offset = len(text) // 2 + step
        windows.cut(document(counting), (offset, offset), "", tokens=TOKENS, suffix_tokens=SUFFIX_TOKENS)
        assert counting.read <= (TOKENS + SUFFIX_TOKENS) * 3 + 1000


@pytest.mark.parametrize("text", [numbered(2000), "same = 1\n" * 5000, "汉字 = '🎉'\n" * 3000, "x" * 100_000])
@pytest.mark.parametrize("typed", ["a = 1\n" * 34, "x" * 204])
def test_typing_moves_the_start_at_most_once(text: str, typed: str) -> None:
    windows = Windows()
    starts = []
    for length in range(len(typed)):
        window = cut(windows, text + typed[:length], len(text) + length)
        assert estimate(window.prefix) <= TOKENS
        starts.append(window.start)
    assert len(set(starts)) <= 2
    assert starts == sorted(starts)


def test_typing_on_moves_the_start_in_large_steps() -> None:
    windows, text = Windows(), numbered(500)
    starts = [cut(windows, text + "b = 2\n" * n, len(text) + 6 * n).start for n in range(1500)]
    moves = len(set(starts)) - 1
    assert 1 <= moves <= 1500 * 6 / (TOKENS * 3 * 0.25)


def test_the_suffix_end_stays_while_typing_and_while_the_cursor_moves_a_little() -> None:
    windows, text = Windows(), numbered(2000)
    offset = text.index("line_01000")
    first = cut(windows, text, offset)
    typed = cut(windows, text[:offset] + "abc\n" + text[offset:], offset + 4)
    assert typed.suffix == first.suffix
    down = cut(windows, text[:offset] + "abc\n" + text[offset:], offset + 4 + len("line_01000 = 1000\n"))
    assert first.suffix.endswith(down.suffix)


def test_an_edit_above_shifts_the_anchor_with_the_text() -> None:
    windows, text = Windows(), numbered(2000)
    before = cut(windows, text, len(text))
    after = cut(windows, "import os\n" + text, len(text) + 10)
    assert after.prefix == before.prefix
    assert after.start == before.start + 10


def test_the_anchor_is_found_by_its_text_when_edits_above_and_below_mix() -> None:
    windows, text = Windows(), numbered(2000)
    before = cut(windows, text, len(text))
    changed = "import os\n" + text + "z = 1\n"
    assert cut(windows, changed, len(changed)).prefix == before.prefix + "z = 1\n"


def test_the_anchor_is_given_up_when_it_is_gone_or_shows_too_little() -> None:
    windows, text = Windows(), numbered(2000)
    first = cut(windows, text, len(text))
    up = cut(windows, text, first.start + 100)
    assert up.start < first.start
    assert estimate(up.prefix) > TOKENS * 0.5
    other = cut(windows, text.replace("line", "name"), len(text))
    assert other.prefix.startswith("name")


def test_forgotten_documents_have_no_anchor() -> None:
    windows, text = Windows(), numbered(2000)
    cut(windows, text, len(text))
    windows.forget("file:///a")
    longer = text + "b = 2\n" * 30
    assert cut(windows, longer, len(longer)) == cut(Windows(), longer, len(longer))


@given(
    text=st.lists(
        st.sampled_from(["a", "\n", "\r", "\r\n", "é", "🎉", "\ud83d", "\ude00", "\u2028", "    "]), max_size=400
    ).map("".join),
    data=st.data(),
)
@settings(max_examples=300)
def test_any_text_fits_and_is_not_cut_in_the_wrong_places(text: str, data: st.DataObject) -> None:
    windows = Windows()
    for _ in range(3):
        offset = data.draw(st.integers(0, len(text)))
        tokens = data.draw(st.integers(0, 60))
        window = cut(windows, text, offset, tokens=tokens, suffix=tokens // 4)
        assert estimate(window.prefix) <= tokens
        assert estimate(window.suffix) <= tokens // 4
        raw = text[window.start : offset]
        assert window.prefix == raw.replace("\r\n", "\n").replace("\r", "\n")
        if raw and window.start:
            pair = text[window.start - 1 : window.start + 1]
            assert pair != "\r\n"
            assert not ("\ud800" <= pair[0] <= "\udbff" and "\udc00" <= pair[1] <= "\udfff")
