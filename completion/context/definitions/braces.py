"""Which lines of a definition are shown where braces hold bodies. Must not know any one language."""

from __future__ import annotations

import re

from completion.context.definitions.code import Code, Kind, Spot

_MARK = re.compile(r"[(){}\[\];\n]")
_GOES_ON = re.compile(r"[ \t]*+(?:[|&?:.=+{]|extends\b|implements\b|where\b|throws\b)")
_UNFINISHED = re.compile(r"(?:[=|&,?:+<]|=>)[ \t]*\Z")
_BODY = re.compile(r"(?:=>|\))[ \t]*\Z")  # before a brace: code follows, no members
_HIDDEN = re.compile(r"[ \t]*+(?:private\b|#|@)")  # private members, attributes
_LABEL = re.compile(r"[ \t]*+(public|protected|private)[ \t]*+:[ \t]*+\Z")
_MOST_HEADER = 12  # lines before the brace
_MOST_VALUE = 12
_MOST_BLOCK = 36
_FARTHEST = 30_000  # code points that are looked through for the end of one block
_MOST_COMMENT = 40  # lines of a comment whose beginning is looked for


class _Lines:
    """The walk over a definition, mark by mark, that collects the numbers of the lines to show."""

    def __init__(self, code: Code, spot: Spot) -> None:
        self.code, self.kind = code, spot.kind
        self.line = code.line_of(spot.at)
        self.kept: list[int] = []
        self.braces = 0
        self.brackets = 0
        self.at_start = 0  # braces open where the line begins
        self.brackets_at_start = 0
        self.hidden = False  # the member that stands in this line
        self.secret = False  # what follows until the next label
        self.opened = False

    def step(self, mark: str, at: int) -> bool:
        """Whether the definition goes on behind this mark."""
        if mark == "\n":
            return self._next_line(at)
        if mark in "([":
            self.brackets += 1
        elif mark in ")]":
            self.brackets -= 1
        elif mark == ";":
            return self.braces > 0 or self.brackets > 0
        elif mark == "{":
            return self._open(at)
        else:
            self.braces -= 1
            return self.braces > 0 or not self.opened
        return self.brackets >= 0 or self.braces > 0

    def _open(self, at: int) -> bool:
        if self.braces == 0:
            if self.kind is Kind.VALUE and _BODY.search(self.code.bare[max(0, at - 40) : at]):
                return False
            if self.brackets <= 0:
                if self.kind is Kind.HEADER:
                    return False
                self.opened = True
        self.braces += 1
        return True

    def _next_line(self, at: int) -> bool:
        self.keep()
        self.line += 1
        self.at_start, self.brackets_at_start = self.braces, self.brackets
        most = _MOST_VALUE if self.kind is Kind.VALUE else _MOST_BLOCK if self.opened else _MOST_HEADER
        if len(self.kept) >= most:
            return False
        if self.kind is not Kind.VALUE or self.braces or self.brackets > 0:
            return True
        bare = self.code.bare
        return bool(_UNFINISHED.search(bare[max(0, at - 40) : at]) or _GOES_ON.match(bare, at + 1))

    def keep(self) -> None:
        bare = self.code.bare_line(self.line)
        if self.opened and self.kept and self.kind is Kind.BLOCK:
            label = _LABEL.match(bare)
            if label:
                self.secret = label[1] == "private"
            if self.brackets_at_start <= 0:
                self.hidden = self.at_start != 1 or bool(_HIDDEN.match(bare))
            if self.hidden or (self.secret and self.braces > 0):
                return
        if bare.strip():
            self.kept.append(self.line)


def outline(code: Code, spot: Spot) -> list[int]:
    """Numbers of the lines with the header, its comment's first line, and the members' own headers."""
    walk = _Lines(code, spot)
    first = walk.line
    start = code.starts[first]
    for mark in _MARK.finditer(code.bare, start, start + _FARTHEST):
        if not walk.step(mark[0], mark.start()):
            if mark[0] != "\n":
                walk.keep()
            break
    else:
        walk.keep()
    above = comment_above(code, first)
    return walk.kept if above is None else [above, *walk.kept]


def comment_above(code: Code, first: int) -> int | None:
    """The first line with words of the comment right above line `first`, attributes between them left aside."""
    lines = code.lines
    number = first - 1
    while number >= 0 and lines[number].lstrip().startswith(("@", "#[", "template")) and first - number < 6:
        number -= 1
    if number < 0:
        return None
    lowest = max(0, number - _MOST_COMMENT)
    if lines[number].rstrip().endswith("*/"):
        end = number
        while number > lowest and "/*" not in lines[number]:
            number -= 1
        if not lines[number].lstrip().startswith("/*"):
            return None
        return next((each for each in range(number, end + 1) if any(map(str.isalpha, lines[each]))), None)
    if not lines[number].lstrip().startswith("//"):
        return None
    while number > lowest and lines[number - 1].lstrip().startswith("//"):
        number -= 1
    return number if any(map(str.isalpha, lines[number])) else None
