"""The step that ends an answer with the statement the cursor is in. Must not know prompts or documents."""

from __future__ import annotations

import re

from completion.lines import bare, opens

# A line's end after which a statement goes on.
_GOES_ON = re.compile(r"(?:[\\=*|&.,?:<]|(?<!\+)\+|(?<!-)-|\b(?:and|or|not|in|is))\Z")


class OneStatement:
    """Lets the statement pass: the first line, and those after it while a bracket is open or a line says it goes on.

    `lead` and `rest` stand on the cursor's line. A statement that opens a block has all of it: the scope ends that.
    """

    def __init__(self, lead: str, rest: str, language_id: str) -> None:
        self._language = language_id
        self._line = lead
        self._open = max(0, _opened(lead) + _opened(rest))  # what the line's rest closes needs no line of the answer
        self._begun = self._block = False

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        at = 0
        while not self._block:
            end = text.find("\n", at)
            part = text[at:] if end < 0 else text[at:end]
            self._line += part
            self._open += _opened(part)
            self._begun = self._begun or part.strip() != ""
            if end < 0:
                break
            if self._begun and self._open <= 0:
                self._block = opens(self._line, self._language)
                if not self._block and not _GOES_ON.search(bare(self._line, self._language)):
                    return text[:end], True
            self._line, at = "", end + 1
        return text, False


def _opened(text: str) -> int:
    """Brackets opened less brackets closed, wherever they stand."""
    return sum(map(text.count, "([{")) - sum(map(text.count, ")]}"))
