"""One line, one statement or a block? Must not know the model.

By the syntax around the cursor where it is known, else by what follows on the line.
"""

from __future__ import annotations

import enum

from completion import syntax
from completion.chat_reply import PROSE
from completion.lines import bare
from completion.postprocess import closers
from completion.syntax import Place
from completion.types import Window

# What may follow the cursor on its line where a block can still be meant: closers, quotes and punctuation.
_CLOSING = frozenset(")]}>\"'`:;,{ \t")

# Code points. About 8,000 lines: whoever opens such a file waits for other things, and it is seldom written by hand.
LARGEST = 320_000

_ONE_LINE = frozenset({Place.COMMENT, Place.STRING, Place.DECORATOR})
_STATEMENT = frozenset({Place.ITEMS, Place.BETWEEN})

# A string in any quotes may have several lines there.
_LONG_STRINGS = frozenset({"shellscript", "fish", "sql", "html", "xml", "perl", "php"})
_LONGEST = 1000  # code points; what longer lines leave open is not looked for


class Extent(enum.Enum):
    """How much an answer may hold."""

    LINE = "line"
    STATEMENT = "statement"  # the lines up to the end of the cursor's statement
    BLOCK = "block"


def extent(mode: str, window: Window, language_id: str, length: int) -> Extent:
    """`mode` is the setting `multiline`, `length` that of the document, in code points."""
    if mode != "auto":
        return Extent.BLOCK if mode == "always" else Extent.LINE
    if not all(character in _CLOSING for character in window.rest):
        return Extent.LINE
    if not window.lead.strip():
        return Extent.BLOCK  # wherever it is: so nothing is parsed
    place = syntax.place(window, language_id) if length <= LARGEST else None
    if place in _ONE_LINE or (place is Place.TEXT and window.rest.strip()):
        return Extent.LINE
    if place is None and _in_comment(window.lead, language_id):
        return Extent.LINE
    if place in _STATEMENT or (place is not Place.TEXT and _unfinished(window, language_id)):
        return Extent.STATEMENT
    return Extent.BLOCK


def _unfinished(window: Window, language_id: str) -> bool:
    """Whether the line ends at the cursor, within arguments or a string of one line."""
    lead = window.lead
    if window.rest.strip() or language_id in PROSE | _LONG_STRINGS or len(lead) > _LONGEST:
        return False
    opened = closers.scan(lead).open
    return bool(opened) and lead[opened[-1]] in "([\"'" and lead[opened[-1] : opened[-1] + 3] not in ('"""', "'''")


def _in_comment(lead: str, language_id: str) -> bool:
    return bare(lead, language_id) == ""
