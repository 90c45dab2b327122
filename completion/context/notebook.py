"""A notebook's cells as one text, as scripts in the percent format hold them. Must not know where cells come from.

The model sees the cells above the cursor's as code that runs before it, which is what they are. No snippets: a place in
a notebook is a place in this text, so window, filters and the reuse of evaluated prompts work as in any file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from io import StringIO
from itertools import accumulate

from completion.chat_reply import PROSE
from completion.languages import comment_marks
from completion.types import PlainText, Text

# Of a cell of prose in code: so many lines that are not blank, so many code points of each. Headings say most.
_PROSE_LINES = 6
_PROSE_WIDTH = 160

# Of a cell of code in prose, lines.
_CODE_LINES = 20

# Cell magics of IPython that make the cell another language's; others leave it what it is. `%` and `!` do so, too.
_MAGIC = re.compile(r"\s*%%(\w+)")
_MAGICS = {
    "bash": "shellscript",
    "sh": "shellscript",
    "html": "html",
    "svg": "xml",
    "javascript": "javascript",
    "js": "javascript",
    "latex": "latex",
    "markdown": "markdown",
    "perl": "perl",
    "r": "r",
    "ruby": "ruby",
    "sql": "sql",
}
_LINE_END = re.compile(r"\r\n|\r|\n")
_NO_TEXT = PlainText("")


class Cell:
    """A cell as it was at one moment. `language_id` is what it is written in: its first line may say so.

    What it looks like among others is worked out once: keep the object as long as the text stays the same.
    """

    __slots__ = ("_lines", "_shown", "language_id", "text")

    def __init__(self, text: Text, language_id: str, *, prose: bool = False) -> None:
        self.text = text
        self.language_id = "markdown" if prose else _language(text, language_id)
        self._shown: tuple[str, tuple[Text, ...]] | None = None
        self._lines: tuple[str, tuple[str, ...]] | None = None

    @property
    def prose(self) -> bool:
        return self.language_id in PROSE

    def shown(self, language_id: str) -> tuple[Text, ...]:
        """What stands before it, it, and what follows it in a text of this language; nothing if it is left out."""
        if self._shown is None or self._shown[0] != language_id:
            self._shown = language_id, self._parts(language_id)
        return self._shown[1]

    def lines(self, language_id: str) -> tuple[str, ...]:
        """The lines of that, each with its ending."""
        if self._lines is None or self._lines[0] != language_id:
            text = "".join([part.slice(0, len(part)) for part in self.shown(language_id)])
            self._lines = language_id, tuple(StringIO(text, newline=""))
        return self._lines[1]

    def _parts(self, language_id: str) -> tuple[Text, ...]:
        if self.language_id == language_id:
            head = self.text.slice(0, len(self.text))
            end = _LINE_END.search(head)
            newline = end[0] if end else "\n"
            before = "" if self.prose else f"{_mark(language_id)}{newline}"
            after = newline if head.endswith(("\n", "\r")) else 2 * newline
            return PlainText(before), self.text, PlainText(after)
        if language_id in PROSE:
            return () if self.prose else self._fenced()
        return self._commented(language_id) if self.prose else ()

    def _commented(self, language_id: str) -> tuple[Text, ...]:
        before, after = comment_marks(language_id)
        lines = [line.rstrip()[:_PROSE_WIDTH] for line in self._head(_PROSE_LINES)]
        # Pictures may be part of the text; and nothing may end the comment.
        told = [line for line in lines if "base64," not in line and not (after and after.strip() in line)]
        if not told:
            return ()
        text = "".join(f"{before}{line}{after}\n" for line in told)
        return PlainText(f"{_mark(language_id, ' [markdown]')}\n"), PlainText(text), PlainText("\n")

    def _fenced(self) -> tuple[Text, ...]:
        text = "\n".join(self._head(_CODE_LINES))
        return PlainText(f"```{self.language_id}\n"), PlainText(text), PlainText("\n```\n\n")

    def _head(self, most: int) -> list[str]:
        """The first lines that are not blank."""
        head = self.text.slice(0, most * _PROSE_WIDTH * 4)
        return [line for line in _LINE_END.split(head) if line.strip()][:most]


class Joined:
    """`Text` over the cells shown in one of a language."""

    __slots__ = ("_cells", "_language_id", "_parts", "_starts")

    def __init__(self, cells: Sequence[Cell], language_id: str) -> None:
        self._cells, self._language_id = cells, language_id
        self._parts = [part for cell in cells for part in cell.shown(language_id) if len(part)]
        self._starts = list(accumulate(map(len, self._parts), initial=0))

    def __len__(self) -> int:
        return self._starts[-1]

    def leaves(self) -> list[tuple[str, ...]]:
        """The lines of each cell: the same objects as long as the cell stays the same."""
        return [lines for cell in self._cells if (lines := cell.lines(self._language_id))]

    def slice(self, start: int, end: int) -> str:
        start, end = max(0, start), min(end, len(self))
        if start >= end:
            return ""
        found = []
        for at in range(bisect_right(self._starts, start) - 1, len(self._parts)):
            begins = self._starts[at]
            if begins >= end:
                break
            found.append(self._parts[at].slice(max(0, start - begins), end - begins))
        return "".join(found)


def script(cells: Sequence[Cell], language_id: str, current: int | None = None) -> tuple[Joined, int]:
    """The cells as one text, and where the text of the `current` one begins in it.

    Code of this language stands as it is, prose as short comments; what is written in other languages is left out. In
    a text of prose it is the other way round. The current cell must be of this language.
    """
    start = 0
    if current is not None:
        start = sum(len(part) for cell in cells[:current] for part in cell.shown(language_id))
        start += len(cells[current].shown(language_id)[0])
    return Joined(cells, language_id), start


def name_in(uri: str, language_id: str, main: str) -> str:
    """What a notebook's text in this language is known by: who compares texts is to compare the same one."""
    return uri if language_id == main else f"{uri}#{language_id}"


def main_language(cells: Sequence[Cell], otherwise: str = "python") -> str:
    """What most cells of code are written in."""
    found = Counter(cell.language_id for cell in cells if not cell.prose)
    return found.most_common(1)[0][0] if found else otherwise


def _mark(language_id: str, kind: str = "") -> str:
    before, after = comment_marks(language_id)
    return f"{before}%%{kind}{after}"


def _language(text: Text, language_id: str) -> str:
    magic = _MAGIC.match(text.slice(0, 100))
    return _MAGICS.get(magic[1].lower(), language_id) if magic else language_id
