"""The text around the cursor that fits a budget of tokens. Must not know prompts or settings.

The window has an anchor: where it begins (and ends) in a document stays the same from key to key as long as the text
fits, and then moves by about a third of the budget. A local model evaluates only what follows the first changed token,
so a window that slides with every line would cost a whole evaluation per line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from completion.tokens import CHARACTERS_PER_TOKEN, estimate, fit_head, fit_tail
from completion.types import DocumentSnapshot, Text, Window

# How much of the budget a newly set anchor uses: the rest is what can be typed before it moves again.
_FILL = 0.68

# An anchor that shows less of the budget than this is given up, if the document has more to show.
_LEAST = 0.35

# Code points by which an anchor is found again.
_MARK = 120

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class _Anchor:
    start: int = 0  # offset of the window's first code point
    mark: str = ""  # the text from there
    length: int = 0  # of the document then
    below: int = 0  # code points of the document after the window
    end_mark: str = ""  # the text before the window's end


class Windows:
    """Cuts windows and remembers the anchor of each document."""

    def __init__(self) -> None:
        self._anchors: dict[str, _Anchor] = {}

    def forget(self, uri: str) -> None:
        self._anchors.pop(uri, None)

    def cut(
        self,
        document: DocumentSnapshot,
        hole: tuple[int, int],
        inserted: str,
        *,
        tokens: int,
        suffix_tokens: int,
        looking: bool = False,
    ) -> Window:
        """What stands before and after `hole`, with `inserted` put at the prefix's end.

        The suffix takes at most `suffix_tokens`; the prefix takes the rest of `tokens`. `looking`: the anchor stays as
        it is, so that the same is cut the next time.
        """
        text = document.text
        anchor = self._anchors.setdefault(document.uri, _Anchor())
        if looking:
            anchor = replace(anchor)
        suffix = _suffix(text, hole[1], suffix_tokens, anchor)
        prefix = _prefix(text, hole[0], max(0, tokens - estimate(suffix) - estimate(inserted)), anchor)
        anchor.length = len(text)
        return Window(
            prefix=_normal(prefix + inserted),
            suffix=_normal(suffix),
            start=hole[0] - len(prefix),
            newline=_newline(prefix, suffix),
        )


def _prefix(text: Text, offset: int, budget: int, anchor: _Anchor) -> str:
    low = max(0, offset - budget * CHARACTERS_PER_TOKEN)
    seen = text.slice(low, offset)
    index = _kept_start(text, seen, low, budget, anchor)
    if index is None:
        whole = low == 0 and estimate(seen) <= budget
        index = 0 if whole else _line_start(seen, budget)
    anchor.start = low + index
    anchor.mark = seen[index : index + _MARK]
    return seen[index:]


def _kept_start(text: Text, seen: str, low: int, budget: int, anchor: _Anchor) -> int | None:
    """Index in `seen` of the anchor, if it can be kept."""
    if not anchor.mark:
        return None
    index = 0 if anchor.start == low == 0 else _find_mark(text, seen, low, anchor)
    if index is None:
        return None
    used = estimate(seen[index:] if index else seen)
    enough = used >= budget * _LEAST or low + index == 0
    return index if enough and used <= budget else None


def _find_mark(text: Text, seen: str, low: int, anchor: _Anchor) -> int | None:
    """Where the anchor's text is now: at its old place, shifted by an edit above, or where else it is nearest."""
    shifted = anchor.start + len(text) - anchor.length
    places = (anchor.start,) if shifted == anchor.start else (anchor.start, shifted)
    if all(not low <= place < low + len(seen) for place in places):
        return None  # the cursor went elsewhere
    for place in places:
        if text.slice(place, place + len(anchor.mark)) == anchor.mark:
            return place - low if place >= low else None
    nearest = None
    at = seen.find(anchor.mark)
    while at >= 0:
        if nearest is None or abs(low + at - shifted) < abs(low + nearest - shifted):
            nearest = at
        at = seen.find(anchor.mark, at + 1)
    return nearest


def _line_start(seen: str, budget: int) -> int:
    """Where to cut `seen`, which is too long, at a line's start; inside a line that alone is too long."""
    target = fit_tail(seen, int(budget * _FILL))
    least = len(seen) - (len(seen) - target) // 2
    after = _LINE_END.search(seen, max(0, target - 1))
    if after and after.end() <= least:
        return after.end()
    first = fit_tail(seen, budget)
    before = [match.end() for match in _LINE_END.finditer(seen, first, target)]
    if before and not _inside(seen, before[-1]):
        return before[-1]
    return target + 1 if _inside(seen, target) else target


def _suffix(text: Text, offset: int, budget: int, anchor: _Anchor) -> str:
    seen = text.slice(offset, min(len(text), offset + budget * CHARACTERS_PER_TOKEN))
    rest = len(text) - offset
    index = _kept_end(seen, rest, budget, anchor)
    if index is None:
        whole = len(seen) == rest and estimate(seen) <= budget
        index = len(seen) if whole else _line_end(seen, int(budget * (_FILL + 1) / 2))
    anchor.below = rest - index
    anchor.end_mark = seen[max(0, index - _MARK) : index]
    return seen[:index]


def _kept_end(seen: str, rest: int, budget: int, anchor: _Anchor) -> int | None:
    index = rest - anchor.below
    if not anchor.end_mark or not 0 < index <= len(seen) or not seen[:index].endswith(anchor.end_mark):
        return None
    used = estimate(seen[:index])
    return index if used <= budget and (used >= budget * _LEAST or anchor.below == 0) else None


def _line_end(seen: str, budget: int) -> int:
    target = fit_head(seen, budget)
    last = max(seen.rfind("\n", 0, target), seen.rfind("\r", 0, target)) + 1
    if last > target // 2 and not _inside(seen, last):
        return last
    return target - 1 if _inside(seen, target) else target


def _inside(text: str, index: int) -> bool:
    """Whether a cut at `index` would part a CR from its LF, or the halves of a surrogate pair."""
    if not 0 < index < len(text):
        return False
    left, right = text[index - 1], text[index]
    return (left == "\r" and right == "\n") or ("\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff")


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _newline(prefix: str, suffix: str) -> str:
    """The line end nearest to the cursor."""
    after = _LINE_END.search(suffix)
    last = max(prefix.rfind("\n"), prefix.rfind("\r"))
    if last >= 0 and (after is None or len(prefix) - last <= after.start() + 1):
        return "\r\n" if prefix[last - 1 : last + 1] == "\r\n" else prefix[last]
    return after[0] if after else "\n"
