"""Brackets and quotes of an answer: which belong together, and which close what it has not opened.

An answer that closes more than the cursor's line still holds open is cut where that begins, if what follows on the line
closes it already.
"""

from __future__ import annotations

from dataclasses import dataclass

from completion.postprocess.base import Around
from completion.types import Reason

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
        elif character in _QUOTES and not _apostrophe(text, at):
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


def cut(text: str, around: Around) -> str | Reason:
    rest = around.window.rest.lstrip()
    if rest[:1] not in PAIRS or not any(closing in text for closing in PAIRS):
        return text
    found = read(text)
    # What stands in quotes is no code: a pair of quotes around a bracket hides it.
    closers = [at for at in found.closers if not _quoted(text, at, found)]
    if not closers or text[closers[0]] != rest[0]:
        return text
    # `b) * (d` before `)` closes one and opens another: both sides still match.
    if [text[at] for at in closers] == [_CLOSING[text[at]] for at in reversed(found.open)]:
        return text
    return text[: closers[0]] if text[: closers[0]].strip() else Reason.DUPLICATE_OF_SUFFIX


def _quoted(text: str, at: int, found: Brackets) -> bool:
    return any(begin < at < end and text[begin] in _QUOTES for begin, end in found.pairs)


def _apostrophe(text: str, at: int) -> bool:
    """Within a word, or escaped."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    return before == "\\" or (text[at] == "'" and before.isalnum() and after.isalnum())
