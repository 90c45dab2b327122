"""A document as lines, whatever it is made of. Must not know sources or their ranking.

A text that is kept as a tree gives its leaves, the same objects as long as they are not edited: whoever has read a leaf
need not read it again.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import islice

from completion.types import DocumentSnapshot, Text

Leaf = tuple[str, ...]  # consecutive lines, each with its ending

# Lines of a leaf made here, of a text that is one string.
_HEIGHT = 64


def leaves(text: Text) -> Sequence[Leaf]:
    """All lines of `text`, which end at `\\n`, `\\r\\n` and `\\r` alone. An empty text has none."""
    given = getattr(text, "leaves", None)
    if given is not None:
        found: Sequence[Leaf] = given()
        return found
    lines = iter(io.StringIO(text.slice(0, len(text)), newline=""))
    made = []
    while leaf := tuple(islice(lines, _HEIGHT)):
        made.append(leaf)
    return made


def lines_of(parts: Sequence[Leaf], first: int, end: int) -> list[str]:
    """The lines from `first` to the one before `end`, as many of them as there are."""
    found: list[str] = []
    at = 0
    for leaf in parts:
        if at >= end:
            break
        if at + len(leaf) > first:
            found += leaf[max(0, first - at) : end - at]
        at += len(leaf)
    return found


def line_at(parts: Sequence[Leaf], offset: int) -> int:
    """The number of the line that holds the code point at `offset`; the last one's behind the end."""
    number = 0
    for leaf in parts:
        length = sum(map(len, leaf))
        if offset < length:
            for line in leaf:
                offset -= len(line)
                if offset < 0:
                    return number
                number += 1
        offset -= length
        number += len(leaf)
    return max(0, number - 1 if parts and parts[-1] and not parts[-1][-1].endswith(("\n", "\r")) else number)


def count(text: str) -> int:
    """The lines of a text with line ends `\n`; what follows the last of them is one if it is not empty."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def normal(text: str) -> str:
    """`text` with line ends `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def name_of(document: DocumentSnapshot) -> str:
    """What a model is told that the file is called."""
    return document.path or document.uri.rpartition("/")[2]
