"""Brackets and quotes of an answer: which belong together, and which close what it has not opened. No filter."""

from __future__ import annotations

from dataclasses import dataclass

PAIRS = {")": "(", "]": "[", "}": "{"}
_CLOSING = {opening: closing for closing, opening in PAIRS.items()}
_QUOTES = "\"'`"


@dataclass(frozen=True, slots=True)
class Brackets:
    """Positions in the text. `pairs` are brackets and quotes, each with what closes it; brackets in quotes count too.

    `open` are the brackets left open, innermost last; `closers` those that close what the text has not opened.
    """

    pairs: tuple[tuple[int, int], ...]
    open: tuple[int, ...]
    closers: tuple[int, ...]


def read(text: str) -> Brackets:
    opened: list[int] = []
    quotes: dict[str, int] = {}
    pairs: list[tuple[int, int]] = []
    closers: list[int] = []
    for at, character in enumerate(text):
        if character == "\n":
            quotes.clear()
        elif character in _QUOTES and not apostrophe(text, at):
            begin = quotes.pop(character, None)
            if begin is None:
                quotes[character] = at
            else:
                pairs.append((begin, at))
        elif character in _CLOSING:
            opened.append(at)
        elif character in PAIRS:
            if opened and text[opened[-1]] == PAIRS[character]:
                pairs.append((opened.pop(), at))
            else:
                closers.append(at)
    return Brackets(tuple(pairs), tuple(opened), tuple(closers))


def apostrophe(text: str, at: int) -> bool:
    """Within a word, or escaped."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    return before == "\\" or (text[at] == "'" and before.isalnum() and after.isalnum())
