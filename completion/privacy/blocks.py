"""Private keys, which go over many lines. Must not know what becomes of them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from completion.privacy.entropy import readable

NEEDLE = "PRIVATE KEY"
_NEEDLES = (NEEDLE, "Private-Lines:")

_BEGIN = r"(?:-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----|Private-Lines: ?[0-9]{1,4})"
_END = r"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"

# Between the lines of a key in a string of a program, in a comment, in JSON.
_BETWEEN = r"(?:[\s\"'`,;+.#*|>()\\-]|\\[nrt])"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\"'\\]{0,200}+"
_LINE = r"[A-Za-z0-9+/=_]"

# A line of key material is long; a short one is the last, before the end. What is typed first may be short, too.
_BODY = rf"(?:\\[nrt]|{_HEADER}|{_BETWEEN}|{_LINE}{{8,}}+|{_LINE}{{1,7}}+(?={_BETWEEN}{{0,20}}(?:{_END}|\Z)))*+"
_WHOLE = re.compile(rf"{_BEGIN}({_BODY})")

# The end of a key whose beginning is out of sight: the lines of key material before it.
_TAIL = re.compile(_END)
_GAP = rf"(?:\\[nrt]|{_BETWEEN})*+"
_MATERIAL = re.compile(rf"{_GAP}(?:{_HEADER}|{_LINE}++)?{_GAP}")

# Of a key of which neither is in sight: full lines of it and nothing else. Group 1 is the line.
_BARE = re.compile(r"[ \t#>*|]*([A-Za-z0-9+/]{60,80}={0,2})[ \t]*")
_REST = re.compile(r"[ \t#>*|]*([A-Za-z0-9+/]{4,76}={0,2})[ \t]*")


def blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where the material of private keys stands in a text."""
    if not any(needle in text for needle in _NEEDLES):
        return
    low = 0
    wholes = deque(match.span(1) for match in _WHOLE.finditer(text))
    yield from wholes
    for match in _TAIL.finditer(text):
        while wholes and wholes[0][1] <= match.start():
            low = wholes.popleft()[1]
        begin = _upwards(text, low, match.start())
        if begin < match.start():
            yield begin, match.start()
        low = match.end()


def _upwards(text: str, low: int, end: int) -> int:
    """Where the lines of key material begin that lead to `end`."""
    begin = end
    while begin > low:
        start = max(low, text.rfind("\n", low, begin - 1) + 1)
        if not _MATERIAL.fullmatch(text, start, begin):
            return begin
        begin = start
    return begin


def bare(line: str, *, after: bool) -> tuple[int, int] | None:
    """Where a line holds nothing but what a key's line may; `after` such a line, shorter ones may be the last."""
    match = (_REST if after else _BARE).fullmatch(line)
    if match is None or not (
        any(map(str.isdigit, line)) and any(map(str.islower, line)) and any(map(str.isupper, line))
    ):
        return None
    return None if readable(match[1]) else match.span(1)
