"""Async-generator transforms that clean a stream of deltas and end it early. Must not know prompts or documents.

Each closes the stream it reads when it stops, so that the backend behind it stops too. None depends on where the text
is split into deltas. A stream ended early has no `finish` in its last delta.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from functools import lru_cache

from backends.base import BackendError, Delta, ErrorKind

Stream = AsyncGenerator[Delta, None]

LINE_ENDS: Mapping[str, str] = {"\r\n": "\n", "\r": "\n"}

# A line this long, white space at its ends aside, is recognised even if it is indented otherwise.
_TELLING = 16


def stop_early(
    stream: Stream,
    *,
    terminators: Iterable[str],
    mends: Mapping[str, str],
    block: bool,
    max_lines: int,
    next_line: str,
    lead: str,
) -> Stream:
    """All of the transforms below, in their order.

    `mends` maps harmless forms of special tokens to the tokens; `next_line` follows the hole, `lead` stands before it.
    """
    stream = replace(whole(stream), LINE_ENDS)
    # First cut, then mend: a mended token is the user's own.
    stream = replace(cut_terminators(stream, terminators), mends)
    stream = until_line(stream, next_line, lead)
    return lines(stream, max_lines) if block else first_line(stream)


async def whole(stream: Stream) -> Stream:
    """Raises BackendError(TRUNCATED) if the stream ends before the model did."""
    finished = False
    async with aclosing(stream):
        async for delta in stream:
            finished = finished or delta.finish is not None
            yield delta
    if not finished:
        raise BackendError(ErrorKind.TRUNCATED, "The answer broke off before its end.")


async def cut_terminators(stream: Stream, terminators: Iterable[str]) -> Stream:
    """End before the first of `terminators`, also if it is split over deltas. Nothing else is taken off."""
    keys = _keys(tuple(terminators))
    held = ""
    async with aclosing(stream):
        async for delta in stream:
            text = held + delta.text
            found = keys.search(text)
            if found:
                yield Delta(text[: found.start()], delta.finish, delta.usage)
                return
            keep = len(text) if delta.finish else len(text) - keys.unsettled(text)
            held = text[keep:]
            yield Delta(text[:keep], delta.finish, delta.usage)
    if held:  # the stream was ended early by a transform before this one
        yield Delta(held)


async def replace(stream: Stream, replacements: Mapping[str, str]) -> Stream:
    """Put each key's value in its place, also if it is split over deltas."""
    keys = _keys(tuple(replacements))
    held = ""
    async with aclosing(stream):
        async for delta in stream:
            text, held, at = held + delta.text, "", 0
            parts: list[str] = []
            for match in keys.finditer(text):
                if match.end() == len(text) and match[0] in keys.beginnings and not delta.finish:
                    break  # might become a longer key
                parts += (text[at : match.start()], replacements[match[0]])
                at = match.end()
            if not delta.finish:
                held = text[len(text) - keys.unsettled(text[at:]) :]
            parts.append(text[at : len(text) - len(held)])
            yield Delta("".join(parts), delta.finish, delta.usage)
    if held:
        yield Delta(keys.sub(lambda match: replacements[match[0]], held))


async def first_line(stream: Stream) -> Stream:
    """End at the first line end after text. White space before the text stays."""
    begun = False
    async with aclosing(stream):
        async for delta in stream:
            text = delta.text
            begins = 0 if begun else len(text) - len(text.lstrip())
            begun = begun or begins < len(text)
            end = text.find("\n", begins)
            if end >= 0:
                yield Delta(text[:end], delta.finish, delta.usage)
                return
            yield delta


async def lines(stream: Stream, count: int) -> Stream:
    """End after `count` lines."""
    left = count
    async with aclosing(stream):
        async for delta in stream:
            at = -1
            for _ in range(delta.text.count("\n")):
                at = delta.text.index("\n", at + 1)
                left -= 1
                if left <= 0:
                    yield Delta(delta.text[:at], delta.finish, delta.usage)
                    return
            yield delta


async def until_line(stream: Stream, target: str, lead: str) -> Stream:
    """End before the line `target`, which follows the hole already. `lead` is what the first line begins with.

    If there is no text before that line, it is kept: the answer is then seen to be a duplicate.
    """
    match = _LineMatch(target, lead)
    async with aclosing(stream):
        async for delta in stream:
            text = match.feed(delta.text, final=delta.finish is not None)
            yield Delta(text, delta.finish, delta.usage)
            if match.met:
                return
    left = match.feed("", final=True)
    if left:
        yield Delta(left)


class _LineMatch:
    """Lets lines pass until one equals the target; the line that still may become equal is held back."""

    def __init__(self, target: str, lead: str) -> None:
        self.met = False
        self._target = target.rstrip()
        self._line = ""  # the current line, with the line end before it
        self._sent = 0  # characters of it that were let pass
        self._lead: str = lead  # before the first line; "" from the second on
        self._blank = True  # no text was let pass
        self._ended = False
        self._open = 0  # brackets the answer has opened and not closed

    def feed(self, text: str, *, final: bool) -> str:
        if not self._target.strip() or self._ended:
            return text
        self._ended = final
        passed = []
        first, *more = text.split("\n")
        self._line += first
        for part in more:
            passed.append(self._end_line())
            if self.met:
                return "".join(passed)
            self._lead, self._line, self._sent = "", "\n" + part, 0
        if final:
            passed.append(self._end_line())
        elif not self._target.strip().startswith(self._full().strip()):
            passed.append(self._pass())
        return "".join(passed)

    def _full(self) -> str:
        return self._lead + self._line.removeprefix("\n")

    def _end_line(self) -> str:
        if self._equal():
            self.met = True
            return self._pass() if self._blank else ""
        passed = self._pass()
        self._open += sum((c in "([{") - (c in ")]}") for c in self._line)
        return passed

    def _pass(self) -> str:
        passed = self._line[self._sent :]
        self._sent = len(self._line)
        self._blank = self._blank and not passed.strip()
        return passed

    def _equal(self) -> bool:
        line, bare = self._full().rstrip(), self._target.strip()
        if line == self._target:
            # A lone closing bracket may belong to what the answer itself has opened.
            return self._open <= 0 or any(c.isalnum() for c in bare)
        return len(bare) >= _TELLING and line.strip() == bare


class _Keys:
    """Texts looked for in a stream."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        longest_first = sorted(keys, key=len, reverse=True)
        # Without keys: a pattern that is found nowhere.
        pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self.search = pattern.search
        self.finditer = pattern.finditer
        self.sub = pattern.sub
        self.beginnings = frozenset(key[:length] for key in keys for length in range(1, len(key)))
        self._longest = max(map(len, self.beginnings), default=0)

    def unsettled(self, text: str) -> int:
        """Length of the longest end of `text` that may become one of the keys."""
        for length in range(min(self._longest, len(text)), 0, -1):
            if text[-length:] in self.beginnings:
                return length
        return 0


_keys = lru_cache(maxsize=64)(_Keys)
