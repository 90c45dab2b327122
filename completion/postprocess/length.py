"""No suggestion is longer than what a person can look over. Must not know where an answer came from."""

from __future__ import annotations

from completion.chat_reply import PROSE
from completion.postprocess.base import Around
from completion.types import Reason

# Code points. Lines of code seldom have 200; a paragraph of prose is one line.
LONGEST = 4000
LONGEST_LINE = 400


def longest_line(language_id: str) -> int:
    """Code points that a line of an answer may have."""
    return LONGEST if language_id in PROSE else LONGEST_LINE


def cap(text: str, around: Around) -> str | Reason:
    """The whole lines before what is too long."""
    limit = longest_line(around.language_id)
    if len(text) <= limit:
        return text
    end = at = 0
    for line in text.split("\n"):
        at += len(line) + 1
        if len(line) > limit or at - 1 > LONGEST:
            return text[: max(0, end - 1)] if text[:end].strip() else Reason.TOO_LONG
        end = at
    return text
