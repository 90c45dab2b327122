"""Answers kept for the text they were made for, also while the user types them. Must not know documents or prompts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from completion.types import RawCompletion, Window

# Code points of the prefix's end and of the suffix's head by which an answer is looked up, and those of the prefix that
# must be equal: what is farther away seldom changes an answer. The suffix must be equal as far as both windows show it.
_KEY = 64
_TAIL = 1000
_HEAD = 256

# No answer is looked for farther back than this; longer ones are not typed by hand.
_LONGEST = 2000


@dataclass(frozen=True, slots=True)
class _Entry:
    tail: str
    whole: bool  # the tail is all there was before the cursor
    suffix: str
    raw: RawCompletion
    longest: int  # so much of it may be typed, code points


@dataclass(frozen=True, slots=True)
class Found:
    """The whole answer, of which `typed` code points stand before the cursor already."""

    raw: RawCompletion
    typed: int


class Cache:
    """Least recently used. Holds only answers that are complete, or that the engine itself ended early."""

    def __init__(self, entries: int) -> None:
        self._size = entries
        self._count = 0
        # A group holds the answers with one scope and one suffix; the answer and the group used last come last.
        self._groups: OrderedDict[tuple[Hashable, str], OrderedDict[str, _Entry]] = OrderedDict()

    def store(self, scope: Hashable, window: Window, raw: RawCompletion) -> None:
        """`scope` stands for all that decides the answer beside the text: backend, settings, document."""
        if self._size <= 0:
            return
        group = self._groups.setdefault((scope, window.suffix[:_HEAD]), OrderedDict())
        self._groups.move_to_end((scope, window.suffix[:_HEAD]))
        key = window.prefix[-_KEY:]
        self._count += key not in group
        whole = window.start == 0 and len(window.prefix) <= _TAIL
        longest = min(max(len(each.text) for each in (raw, *raw.more)), _LONGEST)
        group[key] = _Entry(window.prefix[-_TAIL:], whole, window.suffix, raw, longest)
        group.move_to_end(key)
        if self._count > self._size:
            self._evict()

    def lookup(self, scope: Hashable, window: Window) -> Found | None:
        """The answer made where the cursor is, or at a place before it from where the user has typed what it says.

        An answer of which only white space remains is as good as none, unless it was made right here.
        """
        group = self._groups.get((scope, window.suffix[:_HEAD]))
        if group is None:
            return None
        found, nearest, prefix = None, _LONGEST + 1, window.prefix
        for key, entry in reversed(group.items()):  # most often it is the one used last
            first = max(0, len(prefix) - min(entry.longest, nearest - 1) - len(key))
            # Before a shorter key stood nothing.
            at = prefix.rfind(key, first, len(prefix) if len(key) == _KEY else len(key))
            while at >= 0:
                typed = prefix[at + len(key) :]
                raw = _begun(entry.raw, typed)
                if raw is not None and _fits(entry, window, typed):
                    found, nearest = (key, raw), len(typed)
                    break
                at = prefix.rfind(key, first, at + _KEY - 1) if at > first else -1
            if not nearest:
                break
        if found is None:
            return None
        group.move_to_end(found[0])
        self._groups.move_to_end((scope, window.suffix[:_HEAD]))
        return Found(found[1], nearest)

    def clear(self) -> None:
        self._groups.clear()
        self._count = 0

    def _evict(self) -> None:
        oldest = next(iter(self._groups))
        self._groups[oldest].popitem(last=False)
        self._count -= 1
        if not self._groups[oldest]:
            del self._groups[oldest]


def _begun(raw: RawCompletion, typed: str) -> RawCompletion | None:
    """Which of the answers begins with what was typed and goes on: the likeliest, or one that was chosen instead."""
    if not typed:
        return raw
    for each in (raw, *raw.more):
        if each.text.startswith(typed) and each.text[len(typed) :].strip():
            return each
    return None


def _fits(entry: _Entry, window: Window, typed: str) -> bool:
    if not (entry.suffix.startswith(window.suffix) or window.suffix.startswith(entry.suffix)):
        return False
    before = entry.tail + typed
    if window.start == 0 and entry.whole:
        return window.prefix == before
    if entry.whole or (window.start == 0 and len(window.prefix) < len(before)):
        return False
    return window.prefix.endswith(before[-len(window.prefix) :])
