"""Cells of scripts, which lines as `# %%` part, and the step that keeps an answer within its cell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from completion.languages import comment_marks
from completion.types import Window


@dataclass(frozen=True, slots=True)
class CellMark:
    """How a line begins that parts cells: `comment` and `%%`, with blanks."""

    comment: str
    pattern: re.Pattern[str]

    def begins(self, text: str, at: int = 0) -> bool:
        return self.pattern.match(text, at) is not None

    def may_begin(self, line: str) -> bool:
        """Whether `line` can still become one."""
        bare = line.lstrip(" \t")
        if len(bare) < len(self.comment):
            return self.comment.startswith(bare)
        return bare.startswith(self.comment) and bare[len(self.comment) :].lstrip(" \t") in ("", "%")


def cell_mark(window: Window, language_id: str) -> CellMark | None:
    """The mark of this language, if the text around the cursor holds one."""
    if "%%" not in window.prefix and "%%" not in window.suffix:
        return None
    mark = _mark(language_id)
    if mark is None or not (_found(mark, window.prefix) or _found(mark, window.suffix.partition("\n")[2])):
        return None
    return mark


@cache
def _mark(language_id: str) -> CellMark | None:
    """None where `%%` is a comment of every day."""
    comment = comment_marks(language_id)[0].strip()
    if comment.startswith("%"):
        return None
    return CellMark(comment, re.compile(rf"[ \t]*{re.escape(comment)}[ \t]*%%"))


def _found(mark: CellMark, text: str) -> bool:
    at = text.find("%%")
    while at >= 0:
        if mark.begins(text, text.rfind("\n", 0, at) + 1):
            return True
        at = text.find("%%", at + 2)
    return False


class UntilCell:
    """Ends before a line that begins another cell. A line that the user has begun is the user's own.

    A line that may still become such a mark is held back. `lead` is what the first line begins with.
    """

    def __init__(self, mark: CellMark, lead: str) -> None:
        self._mark = mark
        self._held = ""
        self._open = not lead.strip()  # the current line may still become a mark

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        text, self._held = self._held + text, ""
        at = 0
        while True:
            if self._open and self._mark.begins(text, at):
                return text[:at], True
            end = text.find("\n", at)
            if end < 0:
                break
            at, self._open = end + 1, True
        if self._open and not last and self._mark.may_begin(text[at:]):
            self._held = text[at:]
            return text[:at], False
        self._open = False
        return text, False
