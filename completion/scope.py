"""The step that ends an answer where the block around the cursor ends. Must not know prompts or documents.

By indentation alone: the first line of the answer, with what stands before the cursor, says how deep the block is.
"""

from __future__ import annotations

import re

_OPENERS = (":", "{", "(", "[")
_CLOSERS = re.compile(r"[)\]}]|(?:end|fi|done|esac)\b")
# Lines as shallow as the one that opens the block that still belong to it.
_GOES_ON = re.compile(r"(?:else|elif|elsif|except|finally|catch|rescue|ensure|when|case|default)\b")
# `#if` and its like stand at the margin.
_DIRECTIVES = frozenset({"c", "cpp", "objective-c", "objective-cpp", "cuda-cpp", "csharp"})
_QUOTES = re.compile(r'"""|\'\'\'')
_TAB = 8  # columns; only compared with other indentation


class Scope:
    """Ends before the first line that is shallower than the block; a line that closes the block is its last one.

    `lead` stands before the cursor on its line. Text inside triple quotes is not looked at.
    """

    def __init__(self, lead: str, language_id: str) -> None:
        self._directives = language_id in _DIRECTIVES
        self._begun = lead.strip() != ""
        self._line = lead  # the current line, as far as it has come
        self._sent = len(lead)  # characters of it that were let pass
        self._limit: int | None = None  # columns; None until a line with text has ended
        self._quoted = len(_QUOTES.findall(lead)) % 2 == 1
        self._held = ""  # line ends and blank lines that come before the current line

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        passed: list[str] = []
        first, *more = text.split("\n")
        self._line += first
        for part in more:
            if self._end_line(passed):
                return "".join(passed), True
            self._line, self._sent = part, 0
        bare, ended = self._line.strip(), False
        if last and bare:
            ended = self._end_line(passed)
        elif last or (bare and self._settled()):
            passed.append(self._pass())
        return "".join(passed), ended

    def _settled(self) -> bool:
        """Whether the current line, which has text, stays, whatever else it will hold."""
        return self._limit is None or self._quoted or _columns(self._line) >= self._limit

    def _end_line(self, passed: list[str]) -> bool:
        """The current line is complete. Returns whether the answer ends with it or before it."""
        bare = self._line.strip()
        if not bare:
            self._held += self._line[self._sent :] + "\n"
            return False
        ends = False
        if not self._settled() and not (self._directives and bare.startswith("#")):
            closes = _CLOSERS.match(bare) is not None
            if not closes and not _GOES_ON.match(bare):
                return True
            ends = closes and not bare.endswith(_OPENERS)
        passed.append(self._pass())
        if self._limit is None:
            depth = _columns(self._line)
            # A block that the cursor's line opens, or one at the margin, is all that is wanted; within a block an
            # answer may go on behind the blocks it opens itself.
            opens = bare.endswith(_OPENERS) and (self._begun or depth == 0)
            self._limit = depth + 1 if opens else depth
        self._quoted ^= len(_QUOTES.findall(self._line)) % 2 == 1
        self._held = "\n"
        return ends

    def _pass(self) -> str:
        passed = self._held + self._line[self._sent :]
        self._held, self._sent = "", len(self._line)
        return passed


def _columns(line: str) -> int:
    """The width of a line's indentation."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(_TAB))
