"""The step that ends an answer where the block around the cursor ends. Must not know prompts or documents.

By indentation alone: the first line of the answer, with what stands before the cursor, says how deep the block is.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from completion.indents import closes_block, own_step
from completion.lines import columns, opens

_OPENERS = (":", "{", "(", "[")
_CLOSERS = re.compile(r"[)\]}]|(?:end|fi|done|esac)\b")
# Lines as shallow as the one that opens the block that go on with it.
_GOES_ON = re.compile(r"(?:else|elif|elsif|except|finally|catch|rescue|ensure|when|case|default)\b")
# `#if` and its like stand at the margin.
_DIRECTIVES = frozenset({"c", "cpp", "objective-c", "objective-cpp", "cuda-cpp", "csharp"})
_QUOTES = re.compile(r'"""|\'\'\'')
# Columns that a block is indented by in most documents, at most.
_USUAL = 4


class Scope:
    """Ends before the first line that is shallower than the block; a line that closes the block is its last one.

    `lead` stands before the cursor on its line. Text inside triple quotes is not looked at. `unit` tells what the
    document indents by: an answer may indent by another, which its second line shows.
    """

    def __init__(self, lead: str, language_id: str, unit: Callable[[], str] | None = None) -> None:
        self._language = language_id
        self._lead = lead
        self._unit = unit
        self._opens_block = False  # with its first line
        self._directives = language_id in _DIRECTIVES
        self._begun = lead.strip() != ""
        # The answer may repeat the cursor's indentation, or begin with a blank that is none.
        self._deepest = columns(lead) if lead and not self._begun else None
        self._limit: int | None = None  # columns; None until a line with text has ended
        self._quoted = len(_QUOTES.findall(lead)) % 2 == 1
        self._held = ""  # what was not let pass: line ends and blank lines, and the current line if it may end all
        self._begin_line(lead)

    def _begin_line(self, text: str) -> None:
        self._line = [text]  # the current line, as far as it has come
        self._depth: int | None = None  # columns; None while the line is blank
        self._stays = False  # whatever else the line will hold

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        passed: list[str] = []
        first, *more = text.split("\n")
        self._more(first, passed)
        for part in more:
            if self._end_line(passed):
                return "".join(passed), True
            self._held += "\n"
            self._begin_line("")
            self._more(part, passed)
        ended = last and self._end_line(passed)
        if last and not ended:
            self._pass(passed)
        return "".join(passed), ended

    def _more(self, part: str, passed: list[str]) -> None:
        self._line.append(part)
        self._held += part
        if self._depth is None:
            line = "".join(self._line)
            if line.strip():
                self._depth = columns(line)
                if self._limit is not None and self._unit is not None:
                    self._limit, self._unit = self._in_own_unit(line, self._limit, self._unit), None
                self._stays = self._limit is None or self._quoted or self._depth >= self._limit
        if self._stays:
            self._pass(passed)

    def _end_line(self, passed: list[str]) -> bool:
        """The current line is complete. Returns whether the answer ends with it or before it."""
        if self._depth is None:
            return False
        line = "".join(self._line)
        bare, ends = line.strip(), False
        if not self._stays and not (self._directives and bare.startswith("#")):
            closes = _CLOSERS.match(bare) is not None
            if not closes and not _GOES_ON.match(bare):
                return True
            ends = closes and not bare.endswith(_OPENERS)
        self._pass(passed)
        if self._limit is None:
            # A block that the cursor's line opens, or one at the margin, is all that is wanted; within a block an
            # answer may go on behind the blocks it opens itself.
            opened = bare.endswith(_OPENERS) or opens(line, self._language)
            self._opens_block = opened and not bare.endswith(("(", "[", "="))
            opened = opened and (self._begun or self._depth == 0)
            depth = self._depth if self._deepest is None else min(self._depth, self._deepest)
            self._limit = depth + 1 if opened else depth
        self._quoted ^= len(_QUOTES.findall(line)) % 2 == 1
        return ends

    def _in_own_unit(self, line: str, limit: int, unit: Callable[[], str]) -> int:
        """The limit as the answer counts, which indents by so many blanks what the document indents by `unit`.

        `line` is the answer's second one. Nothing else is told by a first line that does not begin the document's.
        """
        indent, bare, lead = line[: len(line) - len(line.lstrip())], line.strip(), self._lead
        if self._begun or self._quoted or not lead or not indent or self._deepest != limit:
            return limit
        depth, as_lead = columns(line), lead[0] == indent[0]
        if as_lead and (lead[0] == "\t" or 0 < depth - limit <= _USUAL):
            return limit
        if depth >= limit and not self._opens_block:
            return limit
        step = unit()
        levels = len(lead) // len(step) if step and lead == step * (len(lead) // len(step)) else 0
        width = own_step(depth, levels + self._opens_block - closes_block(bare))
        if not width or (as_lead and not self._opens_block and depth % len(step) == 0):
            return limit
        return levels * width

    def _pass(self, passed: list[str]) -> None:
        passed.append(self._held)
        self._held = ""
