"""Steps that clean an answer as it streams in and end it early. Must not know prompts or documents.

Each takes the next part of the text and gives what may pass; none depends on where the text is split into deltas. When
one ends the answer, the stream is closed, so that the backend behind it stops too. A stream ended early has no `finish`
in its last delta. The steps are plain calls: a generator each would cost more than all they do.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Protocol

from backends.base import BackendError, Delta, ErrorKind
from completion.cells import CellMark, UntilCell
from completion.chat_reply import PROSE, DropEcho, Reply, TakeCode
from completion.endings import BlankLines, Budget, Repetition
from completion.postprocess.length import LONGEST, longest_line
from completion.scope import Scope
from completion.statement import OneStatement

Stream = AsyncGenerator[Delta, None]

LINE_ENDS: Mapping[str, str] = {"\r\n": "\n", "\r": "\n"}

# A line this long, white space at its ends aside, is recognised even if it is indented otherwise.
_TELLING = 16


# No source code holds them. Some editors and terminals obey them, or show code in another order than it runs in
# (embeddings, overrides and isolates of Unicode's bidirectional text); half a surrogate pair is more than some clients
# can read. Tabs, line ends and form feeds stay.
_CONTROLS = dict.fromkeys(
    code
    for codes in (range(32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A), range(0xD800, 0xE000))
    for code in codes
    if chr(code) not in "\t\n\r\f"
)


class Step(Protocol):
    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        """What may pass now that `text` came, and whether the answer ends with it. `last`: no more will come."""


def stop_early(
    stream: Stream,
    *,
    terminators: Iterable[str],
    mends: Mapping[str, str],
    block: bool,
    max_lines: int,
    next_line: str,
    lead: str,
    language_id: str = "",
    reply: Reply | None = None,
    cells: CellMark | None = None,
    over: Callable[[], bool] | None = None,
    ended: Callable[[str], object] | None = None,
    statement: str | None = None,
    unit: Callable[[], str] | None = None,
) -> Stream:
    """All of the steps, in their order. Raises BackendError(TRUNCATED) if the stream ends before the model did.

    `mends` maps harmless forms of special tokens to the tokens; `next_line` follows the hole, `lead` stands before it;
    `reply` says how to read the answer of a model that chats, `reply.marker` being empty if no hole was marked; `cells`
    begins the next cell where the document has such; `over` tells whether the time for more than one line is over;
    `ended` is given the name of the step that ended the answer; `statement` is what follows on the cursor's line where
    one statement is wanted; `unit` is what the document indents by.
    """
    chat = (
        (TakeCode(prose=reply.prose), Replace({reply.marker: ""} if reply.marker else {}), DropEcho(reply.prefix))
        if reply
        else ()
    )
    steps: tuple[Step, ...] = (
        Replace(LINE_ENDS),
        # First cut, then mend: a mended token is the user's own.
        CutTerminators(terminators),
        *chat,
        Replace(mends),
        Cap(LONGEST, longest_line(language_id)),
        *((UntilCell(cells, lead),) if cells else ()),
        UntilLine(next_line, lead),
        Repetition(),
        *((Budget(over),) if over and block else ()),
        *((OneStatement(lead, statement, language_id),) if statement is not None else ()),
        *_lengths(block, max_lines, lead, None if reply or language_id in PROSE else Scope(lead, language_id, unit)),
    )
    return through(stream, steps, ended)


def _lengths(block: bool, max_lines: int, lead: str, scope: Scope | None) -> tuple[Step, ...]:
    """How far an answer may go. Chat models indent as they like, and prose has no blocks: no scope for these."""
    if not block:
        return (FirstLine(keep_end=not lead.strip()),)
    return (*((scope,) if scope else ()), Lines(max_lines), BlankLines())


async def through(stream: Stream, steps: Sequence[Step], tell_end: Callable[[str], object] | None = None) -> Stream:
    """`tell_end` is given the name of the first step that ends the answer. Raises BackendError(TRUNCATED)."""
    finished = False
    async with aclosing(stream):
        async for delta in stream:
            finished = finished or delta.finish is not None
            text, ended = delta.text.translate(_CONTROLS), False
            for step in steps:
                text, ends = step.feed(text, last=ended or finished)
                if ends and not ended and tell_end is not None:
                    tell_end(type(step).__name__)
                ended = ended or ends
            yield Delta(text, delta.finish, delta.usage)
            if ended:
                return
    if not finished:
        raise BackendError(ErrorKind.TRUNCATED, "The answer broke off before its end.")


class CutTerminators:
    """Ends before the first of `terminators`, also if it is split over deltas. Nothing else is taken off."""

    def __init__(self, terminators: Iterable[str]) -> None:
        self._keys = _keys(tuple(terminators))
        self._held = ""

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        text = self._held + text
        found = self._keys.search(text)
        if found:
            return text[: found.start()], True
        keep = len(text) if last else len(text) - self._keys.unsettled(text)
        self._held = text[keep:]
        return text[:keep], False


class Replace:
    """Puts each key's value in its place, also if it is split over deltas."""

    def __init__(self, replacements: Mapping[str, str]) -> None:
        self._replacements = replacements
        self._keys = _keys(tuple(replacements))
        self._held = ""

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        text, self._held, at = self._held + text, "", 0
        parts: list[str] = []
        for match in self._keys.finditer(text):
            if match.end() == len(text) and match[0] in self._keys.beginnings and not last:
                break  # might become a longer key
            parts += (text[at : match.start()], self._replacements[match[0]])
            at = match.end()
        if not last:
            self._held = text[len(text) - self._keys.unsettled(text[at:]) :]
        parts.append(text[at : len(text) - len(self._held)])
        return "".join(parts), False


class FirstLine:
    """Ends at the first line end after text; with `keep_end` behind it. White space before the text stays."""

    def __init__(self, *, keep_end: bool = False) -> None:
        self._keep = int(keep_end)
        self._begun = False

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        begins = 0 if self._begun else len(text) - len(text.lstrip())
        self._begun = self._begun or begins < len(text)
        end = text.find("\n", begins)
        return (text[: end + self._keep], True) if end >= 0 else (text, False)


class Lines:
    """Ends after `count` lines."""

    def __init__(self, count: int) -> None:
        self._left = count

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        at = -1
        for _ in range(text.count("\n")):
            at = text.index("\n", at + 1)
            self._left -= 1
            if self._left <= 0:
                return text[:at], True
        return text, False


class Cap:
    """Ends with the first character that is too many in the answer or in one of its lines. It passes: so it is seen."""

    def __init__(self, longest: int, longest_line: int) -> None:
        self._left = longest
        self._line_left = self._longest_line = longest_line

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        at = 0
        while True:
            end = text.find("\n", at)
            stop = end if end >= 0 else len(text)
            room = min(self._line_left, self._left - at)
            if stop - at > room:
                return text[: at + room + 1], True
            if end < 0:
                self._line_left -= stop - at
                self._left -= len(text)
                return text, False
            at, self._line_left = end + 1, self._longest_line


class UntilLine:
    """Ends before the line `target`, which follows the hole already. `lead` is what the first line begins with.

    The line that still may become equal is held back. If there is no text before that line, it is kept: the answer is
    then seen to be a duplicate.
    """

    def __init__(self, target: str, lead: str) -> None:
        self._met = False
        self._target = target.rstrip()
        self._bare = target.strip()
        self._line = ""  # the current line with what stands before it, as long as it may become equal
        self._begin_line(lead, "")
        self._blank = True  # no text was let pass
        self._ended = False
        self._open = 0  # brackets the answer has opened and not closed

    def _begin_line(self, lead: str, newline: str) -> None:
        self._line = lead
        self._held = newline  # what of the line was not let pass, with the line end before it
        self._apart = False  # the line cannot become equal any more: nothing of it is held or looked at
        self._line_open = 0

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        if not self._bare or self._ended:
            return text, False
        self._ended = last
        passed: list[str] = []
        first, *more = text.split("\n")
        self._more(first, passed)
        for part in more:
            self._end_line(passed)
            if self._met:
                return "".join(passed), True
            self._begin_line("", "\n")
            self._more(part, passed)
        if last:
            self._end_line(passed)
        return "".join(passed), self._met

    def _more(self, part: str, passed: list[str]) -> None:
        self._held += part
        self._line_open += sum(map(part.count, "([{")) - sum(map(part.count, ")]}"))
        if not self._apart:
            self._line += part
            self._apart = not self._bare.startswith(self._line.strip())
        if self._apart:
            self._pass(passed)

    def _end_line(self, passed: list[str]) -> None:
        self._met = not self._apart and self._equal()
        if self._blank or not self._met:
            self._pass(passed)
        self._open += self._line_open

    def _pass(self, passed: list[str]) -> None:
        passed.append(self._held)
        self._blank = self._blank and not self._held.strip()
        self._held = ""

    def _equal(self) -> bool:
        line = self._line.rstrip()
        if line == self._target:
            # A lone closing bracket may belong to what the answer itself has opened.
            return self._open <= 0 or any(c.isalnum() for c in self._bare)
        return len(self._bare) >= _TELLING and line.strip() == self._bare


class _Keys:
    """Texts looked for in a stream."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        longest_first = sorted(keys, key=len, reverse=True)
        # Without keys: a pattern that is found nowhere.
        pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self.search = pattern.search
        self.finditer = pattern.finditer
        self.beginnings = frozenset(key[:length] for key in keys for length in range(1, len(key)))
        self._longest = max(map(len, self.beginnings), default=0)

    def unsettled(self, text: str) -> int:
        """Length of the longest end of `text` that may become one of the keys."""
        for length in range(min(self._longest, len(text)), 0, -1):
            if text[-length:] in self.beginnings:
                return length
        return 0


_keys = lru_cache(maxsize=64)(_Keys)
