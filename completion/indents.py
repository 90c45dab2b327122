"""How a document indents: tabs, or how many blanks. Must not know answers."""

from __future__ import annotations

import re
from collections import Counter

from completion.types import Window

# Where nothing is indented yet. All others: as the answer has it.
_GIVEN = {"go": "\t", "makefile": "\t", "yaml": "  ", "dockercompose": "  "}
_WIDTHS = frozenset((1, 2, 3, 4, 8))
_STEPS = 2  # that must agree before they count
# More tells no more: code points before and after the cursor.
_BEFORE, _AFTER = 3000, 1500

_INDENT = re.compile(r"\n([ \t]*)(?=[^ \t\n])")


def unit(window: Window, language_id: str) -> str:
    """What one step of indentation is made of, `\\t` or blanks; empty if it is not known.

    A step is what a line is indented more than the line above. Lines that continue others may be aligned anyhow, so
    that only a width that most of the steps have is one.
    """
    return _unit(window.prefix[-_BEFORE:], window.suffix[:_AFTER]) or _GIVEN.get(language_id, "")


def _unit(prefix: str, suffix: str) -> str:
    tabs = prefix.count("\n\t") + suffix.count("\n\t")
    blanks = prefix.count("\n ") + suffix.count("\n ")
    if tabs or blanks:
        if tabs > blanks:
            return "\t"
        if tabs == blanks:
            return ""
    widths = _steps(prefix, suffix)
    found = widths.most_common(1)
    if not found or found[0][0] not in _WIDTHS or found[0][1] < _STEPS or found[0][1] * 2 <= widths.total():
        return ""
    return " " * found[0][0]


def is_depth(window: Window, indent: str) -> bool:
    """Whether some line near the cursor is indented just so."""
    found = re.compile(rf"\n{indent}(?=[^ \t\n])")
    return bool(found.search(window.prefix[-_BEFORE:]) or found.search(window.suffix[:_AFTER]))


def has_step(window: Window, width: int) -> bool:
    """Whether some line near the cursor is indented by so many columns more than the one above."""
    return width in _steps(window.prefix[-_BEFORE:], window.suffix[:_AFTER])


def _steps(prefix: str, suffix: str) -> Counter[int]:
    widths: Counter[int] = Counter()
    for text in (prefix, suffix):
        above = 0
        for indent in _INDENT.findall(text):
            width = len(indent)
            if width > above:
                widths[width - above] += 1
            above = width
    return widths
