"""Steps that end an answer of which nothing more is wanted: it repeats itself, has ended, or takes too long.

Like those of `stopping`, none but the last depends on where the text is split into deltas.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from completion.postprocess import repetition

# How often the end is looked at for repeated words, and how much of it must be one repetition, in code points.
_EACH = 80
_LASTING = 320
_RUN = 120  # the same character in a row
# Equal lines, or equal blocks of at most so many lines, in a row. More than the filter takes for a repetition.
_EQUAL = 4
_BLOCK_LINES, _BLOCKS = 8, 3

_TWO_BLANK = re.compile(r"\n[ \t]*\n[ \t]*\n")
_UNSETTLED = re.compile(r"\n\s*\Z")


class Repetition:
    """Ends where the answer has only repeated itself for long. What was repeated passes: the filter sees it."""

    def __init__(self) -> None:
        self._text = ""
        self._line = ""
        self._lines: list[str] = []  # with text, without the white space around it

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        at = 0
        while at < len(text):
            newline = text.find("\n", at) + 1
            end = min(newline or len(text), at + _EACH - len(self._text) % _EACH)
            self._text += text[at:end]
            self._line += text[at:end]
            at = end
            if (newline == end and self._line_repeats()) or (len(self._text) % _EACH == 0 and self._words_repeat()):
                return text[:end], True
        return text, False

    def _line_repeats(self) -> bool:
        line, self._line = self._line.strip(), ""
        if not line:
            return False
        self._lines.append(line)
        for length in range(1, _BLOCK_LINES + 1):
            count = length * (_EQUAL if length == 1 else _BLOCKS)
            end = self._lines[-count:]
            if len(end) == count and end[length:] == end[:-length] and any(map(repetition.tells, end)):
                return True
        return False

    def _words_repeat(self) -> bool:
        run = len(self._text) - len(self._text.rstrip(self._text[-1]))
        tail = self._text[-_LASTING:]
        return run >= _RUN or (len(tail) == _LASTING and repetition.lasting(tail))


class BlankLines:
    """Ends before the second blank line in a row behind text: what follows is another thing."""

    def __init__(self) -> None:
        self._held = ""  # white space from a line end on, behind text
        self._begun = False

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        text, self._held = self._held + text, ""
        begins = 0 if self._begun else len(text) - len(text.lstrip())
        self._begun = self._begun or begins < len(text)
        if not self._begun:
            return text, False
        found = _TWO_BLANK.search(text, begins)
        if found:
            return text[: found.start()], True
        rest = None if last else _UNSETTLED.search(text, max(begins, len(text.rstrip())))
        if rest:
            text, self._held = text[: rest.start()], rest[0]
        return text, False


class Budget:
    """Ends when the time is `over` and the answer has a whole line. It may end within the next one."""

    def __init__(self, over: Callable[[], bool]) -> None:
        self._over = over
        self._begun = False
        self._line = False

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        if not self._line:
            begins = 0 if self._begun else len(text) - len(text.lstrip())
            self._begun = self._begun or begins < len(text)
            self._line = self._begun and "\n" in text[begins:]
        return text, self._line and not last and self._over()
