"""What stands before the cursor is not suggested again: the lines right above it, or a whole definition farther up.

Whoever repeats lines may repeat them once more.
"""

from __future__ import annotations

import re

from completion.lines import lines_above
from completion.postprocess.base import Around
from completion.postprocess.repetition import tells
from completion.types import Reason

_ABOVE = 40  # lines with text that are looked at
# One line alone is repeated by chance. Code points.
_TELLING = 16
_DEFINES = re.compile(
    r"(?:export |public |private |protected |static |async |pub |abstract |final |default |override )*"
    r"(?:(?:def|class|function|func|fn|impl|struct|enum|interface|trait|module|type|sub|proc)\b"
    r"|[\w<>\[\],*&: ]+\([^()]*\)\s*\{)"
)


def drop(text: str, around: Around) -> str | Reason:
    window = around.window
    lines = [line.strip() for line in (window.lead + text).split("\n") if line.strip()]
    if window.rest.strip() or not any(map(tells, lines)):
        return text
    if len(lines) > 1 and _DEFINES.match(lines[0]) and _stands_above(window.lead + text, around):
        return Reason.DUPLICATE_OF_PREFIX
    if window.lead.strip() or (len(lines) == 1 and len(lines[0]) < _TELLING):
        return text
    above = lines_above(window, _ABOVE)
    count = len(lines)
    repeats = above[-count:] == lines
    return Reason.DUPLICATE_OF_PREFIX if repeats and above[-2 * count : -count] != lines else text


def _stands_above(block: str, around: Around) -> bool:
    return f"\n{block.rstrip()}\n" in f"\n{around.window.prefix}"
