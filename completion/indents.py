"""How a document indents: tabs, or how many blanks. Must not know what is done with it."""

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

_CLOSING = re.compile(
    r"[)\]}]|(?:end|fi|done|esac|else|elif|elsif|except|finally|catch|rescue|ensure|when|case|default)\b"
)
_INDENT = re.compile(r"\n([ \t]*)(?=[^ \t\n])")


def unit(window: Window, language_id: str) -> str:
    """What one step of indentation is made of, `\\t` or blanks; empty if it is not known.

    A step is what a line is indented more than the line above. Lines that continue others may be aligned anyhow, so
    that only a width that most of the steps have is one.
    """
    return _unit(window.prefix[-_BEFORE:], window.suffix[:_AFTER]) or _GIVEN.get(language_id, "")


def step(window: Window, language_id: str) -> str:
    """The unit, or where it is not known what the cursor's line is indented more than the nearest line that is less."""
    known, lead = unit(window, language_id), window.lead
    if known or not lead or lead.strip(" "):
        return known
    for line in reversed(window.prefix[-_BEFORE:].split("\n")[:-1]):
        depth = len(line) - len(line.lstrip())
        if depth < len(line) and depth < len(lead) and line[0] != "\t":
            rise = len(lead) - depth
            return " " * rise if rise in _WIDTHS else ""
    return ""


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


def own_step(depth: int, levels: int) -> int:
    """Columns per level of a text that has a line `levels` deep at `depth`; 0 if there is no such width."""
    return depth // levels if levels > 0 and depth % levels == 0 and depth // levels in (2, 3, 4, 8) else 0


def closes_block(line: str) -> bool:
    """Whether a line, without its indentation, is as deep as the one that opens its block."""
    return _CLOSING.match(line) is not None


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
