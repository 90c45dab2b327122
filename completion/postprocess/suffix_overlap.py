"""The answer's end must not repeat what already follows the cursor: the rest of the line, or the lines below.

Closing brackets and quotes that belong to what the answer itself opens are not taken for a repetition.
"""

from __future__ import annotations

from itertools import accumulate

from completion.lines import columns
from completion.postprocess import brackets, closers
from completion.postprocess.base import Around
from completion.types import Reason, Window

# Lines below that are compared; an answer repeats the nearest ones.
_BELOW = 20

# An overlap with part of the rest of the line is taken for one from so many characters on, if it holds words. A line
# below is recognised with another indentation from so many on.
_WORDS = 3
_TELLING = 16
# The beginning of the next line is taken for that line, cut off, from so many on.
_CUT = 6


def cut(text: str, around: Around) -> str | Reason:
    window = around.window
    if window.rest.strip():
        shorter = _before_rest(text, window.rest.rstrip())
        if shorter != text and closers.fits_better(text, shorter, around):
            return text
    else:
        shorter = _before_lines_below(text, window)
    if shorter != text and not shorter.strip():
        return Reason.DUPLICATE_OF_SUFFIX
    return shorter


def _before_rest(text: str, rest: str) -> str:
    """Without an end that repeats the beginning of `rest`, the longest one that may go."""
    first, newline, _ = text.partition("\n")
    if newline and rest.strip() and not any(map(_word, rest)) and first.rstrip().endswith(rest):
        # The model closed the line itself and went on below: what follows belongs behind the brackets.
        cut_at = len(first.rstrip()) - len(rest)
        if not _Own(first).closed_after(cut_at):
            return first[:cut_at]
    bare = text.rstrip()
    if bare.strip() == rest.strip():
        return ""
    own, first_word = _Own(bare), next((at for at, character in enumerate(rest) if _word(character)), len(rest))
    for length in range(min(len(rest), len(bare)), 0, -1):
        cut_at = len(bare) - length
        telling = length <= first_word or _worth(bare, rest, length)
        if telling and bare.endswith(rest[:length]) and not own.closed_after(cut_at):
            return bare[:cut_at]
    return text


def _worth(bare: str, rest: str, length: int) -> bool:
    """Whether an overlap that holds words is more than chance."""
    overlap = rest[:length]
    if length == len(rest):
        return True
    cut_at = len(bare) - length
    begins_word = cut_at == 0 or not (_word(bare[cut_at - 1]) and _word(overlap[0]))
    ends_word = not (_word(overlap[-1]) and _word(rest[length]))
    return len(overlap.strip()) >= _WORDS and begins_word and ends_word


def _before_lines_below(text: str, window: Window) -> str:
    """Without last lines that equal the first lines below, blank ones aside; nothing if all of it stands there."""
    below = [line.rstrip() for line in window.suffix.split("\n")[1:] if line.strip()][:_BELOW]
    lines = (window.lead + text).split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    own = _Own(text)
    for count in range(min(len(filled), len(below)), 0, -1):
        first = filled[-count]
        if all(_same(lines[number], other) for number, other in zip(filled[-count:], below, strict=False)):
            cut_at = _before(lines, first, window)
            if not own.closed_after(cut_at):
                return text[:cut_at]
    if below and filled and _cut_off(lines[filled[-1]], below[0], alone=len(filled) == 1):
        cut_at = _before(lines, filled[-1], window)
        return text if own.closed_after(cut_at) else text[:cut_at]
    return "" if len(filled) > 1 and _stands_below([lines[number] for number in filled], below) else text


def _before(lines: list[str], number: int, window: Window) -> int:
    """Where the text ends before one of its lines. The first one begins with what stands before the cursor."""
    return max(0, len("\n".join(lines[:number])) - len(window.lead)) if number else 0


def _same(line: str, below: str) -> bool:
    line = line.rstrip()
    if line == below:
        return True
    bare, other = line.strip(), below.strip()
    if len(other) < _TELLING:
        # White space, quotes and the mark of the end differ from model to model.
        return columns(line) == columns(below) and any(map(_word, other)) and _form(bare) == _form(other)
    return bare == other or _form(bare) == _form(other)


def _form(line: str) -> str:
    return "".join(line.split()).replace("'", '"').rstrip(";,")


def _cut_off(line: str, below: str, *, alone: bool) -> bool:
    """Whether `line` is the beginning of `below`, ended within it. `alone`: it is all there is, so it must be plain."""
    bare = line.rstrip()
    length = len(bare)
    if not (len(bare.strip()) >= _CUT and length < len(below) and below.startswith(bare)):
        return False
    if alone:
        within = length > 0 and _word(bare[-1]) and _word(below[length])
        return within or (len(bare.strip()) >= _TELLING and bool(brackets.read(bare).open))
    return _word(below[length])


def _stands_below(lines: list[str], below: list[str]) -> bool:
    """Whether `lines` are there already, one after the other, if not right below."""
    count = len(lines)
    if sum(len(line.strip()) for line in lines) < _TELLING:
        return False
    bare = [line.rstrip() for line in lines]
    return any(below[at : at + count] == bare for at in range(1, len(below) - count + 1))


class _Own:
    """What an answer closes of its own brackets and quotes. Read once: many places to cut at may be tried."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._inside: list[int] | None = None  # per place: how many pairs begin before it and end at it or behind it

    def closed_after(self, cut_at: int) -> bool:
        """Whether `text[cut_at:]` closes a bracket or a quote that `text[:cut_at]` opens."""
        if self._inside is None:
            changes = [0] * (len(self._text) + 2)
            for begin, end in brackets.read(self._text).pairs:
                changes[begin + 1] += 1
                changes[end + 1] -= 1
            self._inside = list(accumulate(changes))
        return self._inside[cut_at] > 0


def _word(character: str) -> bool:
    return character == "_" or character.isalnum()
