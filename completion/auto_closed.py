"""Brackets and quotes that an editor puts behind the cursor when their other half is typed. Must not know documents."""

from __future__ import annotations

from collections.abc import Iterator

_CLOSERS = {"(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "`": "`"}
_HALVES = frozenset(_CLOSERS.values())
_MOST = 4  # opened one in the other and not closed yet


def counts(after: str) -> Iterator[int]:
    """How many characters behind the cursor may be such, fewest first."""
    for count, character in enumerate(after[:_MOST], 1):
        if character not in _HALVES:
            return
        yield count


def behind(typed: str, after: str) -> int:
    """How many of the first characters of `after` close what `typed` has opened and left open."""
    opened: list[str] = []
    for character in typed:
        if opened and character == opened[-1]:
            opened.pop()
        elif character in _CLOSERS:
            opened.append(_CLOSERS[character])
    count = 0
    while opened and after[count : count + 1] == opened.pop():
        count += 1
    return count
