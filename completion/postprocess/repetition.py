"""Models that lose their way say the same again and again: characters, words, lines or blocks. What stood before stays.

Only what lasts to the answer's end is taken for a repetition: `[0, 0, 0, 0]` is code, and ends. The user's own text may
hold long runs of a character; then the answer may, too. Must not know the model.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from completion.postprocess.base import Around
from completion.types import Reason

# Characters in a row that are none of code. Rulers of comments are made of signs, box drawings among them.
_RUN = 12
_LONG_RUN = 120
_RULER = frozenset("-=*#_~/.+<>^|!:;%&@\"'`\\ \t")
# Of ASCII only what lasts to the end: `000000000000` may be a number.
_RUNS = re.compile(rf"([^\x00-\x7f\s\u2500-\u257f])\1{{{_RUN - 1}}}")

# Of words and signs: how many at the end, with what period at most, are too many. The figures are another product's.
_PERIODS = ((10, 1), (30, 10), (45, 20), (60, 30))
_LONG = 200  # code points of four times the same
_WORDS_LOOKED_AT = 480  # code points; 60 words and signs seldom take more
_END = 6
# A line's indentation counts by what it differs from that of the line above.
_WORD = re.compile(r"\n[ \t]*|\w+|([^\w\s])\1*")

# Lines in a row that are equal, at the end and anywhere; short ones may well be (`}`, `i += 1`).
_EQUAL_AT_END, _EQUAL = 3, 6
_TELLING = 4  # word characters
# A block of fewer lines, or of fewer code points, may come twice.
_BLOCK_LINES, _BLOCK = 3, 40


def cut(text: str, around: Around) -> str | Reason:
    end = _before_run(text, around)
    if end == len(text):
        end = min(_before_words(text), _before_lines(text))
    if end == len(text):
        return text
    return text[:end] if text[:end].strip() else Reason.REPETITION


def lasting(text: str) -> bool:
    """Whether all of `text`, the end of a longer one, is one repetition: nothing else will come."""
    words, _ = _words(text)
    return any(period.length * 4 <= len(words) for period in _periods(words, len(words) - 2))


def _before_run(text: str, around: Around) -> int:
    """Where the line begins in which one character is repeated."""
    run = None if text.isascii() else _RUNS.search(text)
    bare = text.rstrip()
    start, last = (run.start(), run[1]) if run else (len(bare.rstrip(bare[-1:])), bare[-1:])
    least = _LONG_RUN if last in _RULER or "\u2500" <= last <= "\u257f" else _RUN
    junk = run is not None or len(bare) - start >= least
    if not junk or last * least in around.window.prefix or last * least in around.window.suffix:
        return len(text)
    return _whole_lines(text, start)


def _before_words(text: str) -> int:
    """Where the line begins in which words begin to repeat, up to the text's end."""
    start = max(0, len(text) - _WORDS_LOOKED_AT)
    tail = text[start:].rstrip()
    if tail.count(tail[-_END:]) < 2:  # the end of what is repeated stands there twice
        return len(text)
    words, places = _words(tail)
    for found in _longest(_periods(words)):
        few = any(found.count >= count and found.length <= longest for count, longest in _PERIODS)
        # Long words are fewer.
        few = few or (found.count >= 4 * found.length and len(tail) - places[-found.count] >= _LONG)
        if few and not _closing(words[len(words) - found.length :]):
            return _whole_lines(text, start + places[len(words) - found.count])
    return len(text)


def _words(text: str) -> tuple[list[Hashable], list[int]]:
    words: list[Hashable] = []
    places: list[int] = []
    depth = 0
    for match in _WORD.finditer(text):
        word = match[0]
        places.append(match.start())
        if word[0] == "\n":
            words.append(len(word) - 1 - depth)
            depth = len(word) - 1
        else:
            words.append(word)
    return words, places


def _closing(words: Sequence[Hashable]) -> bool:
    """Blocks within blocks are closed in the same way, each shallower than the one before."""
    return sum(word for word in words if isinstance(word, int)) < 0


def _before_lines(text: str) -> int:
    """Behind the first of equal lines, or of equal blocks of lines that last to the end."""
    lines = text.split("\n")
    if len(lines) < _EQUAL_AT_END:
        return len(text)
    bare = [line.strip() for line in lines]
    equal = 1
    for number in range(1, len(bare)):
        equal = equal + 1 if bare[number] == bare[number - 1] and tells(bare[number]) else 1
        if equal == _EQUAL:
            return _behind_first(lines, number - _EQUAL + 1, 1, _EQUAL)
    filled = [number for number, line in enumerate(bare) if line]
    said = [bare[number] for number in filled]
    # The last line may have been cut.
    for last, whole in ((len(said), True), (len(said) - 1, False)):
        if said[last - 1 : last] == [] or said[last - 1] not in said[: last - 1]:
            continue
        for found in _longest(_periods(said[:last])):
            block = said[last - found.length : last]
            if not whole and not block[0].startswith(said[last]):
                continue
            if _too_often(block, found.count):
                first = filled[last - found.count]
                length = filled[last - found.count + found.length - 1] + 1 - first
                return _behind_first(lines, first, length, found.count // found.length)
    return len(text)


def _too_often(block: list[str], count: int) -> bool:
    """`count` lines at the end say `block` again and again."""
    if not any(map(tells, block)):
        return False
    if len(block) >= _BLOCK_LINES and sum(map(len, block)) >= _BLOCK:
        return count >= 2 * len(block)
    return count >= _EQUAL_AT_END * len(block)


def tells(line: str) -> bool:
    """Whether `line` says more than that a block ends."""
    return sum(map(str.isalnum, line)) >= _TELLING


@dataclass(frozen=True, slots=True)
class _Period:
    count: int  # elements at the end that are periodic
    length: int  # of the period


def _periods(elements: Sequence[Hashable], least: int = 2) -> list[_Period]:
    """For each end of `elements` its smallest period, if that fits twice; the shortest end first."""
    backwards = elements[::-1]
    borders = [0] * len(backwards)  # the longest beginning of each that is its end, too
    found: list[_Period] = []
    border = 0
    for at in range(1, len(backwards)):
        while border and backwards[at] != backwards[border]:
            border = borders[border - 1]
        border += backwards[at] == backwards[border]
        borders[at] = border
        length = at + 1 - border
        if at + 1 >= least and 2 * length <= at + 1:
            found.append(_Period(at + 1, length))
    return found


def _longest(periods: list[_Period]) -> Iterable[_Period]:
    """The longest end of each period: shorter ones say the same."""
    return {period.length: period for period in periods}.values()


def _whole_lines(text: str, end: int) -> int:
    """The end of the whole lines before `end`."""
    return max(0, text.rfind("\n", 0, end + 1))


def _behind_first(lines: list[str], begin: int, count: int, times: int) -> int:
    """The end of the first of equal blocks of `count` lines. If the answer begins with it, it is mostly junk itself."""
    if (count < _BLOCK_LINES or times > 2) and not any(map(str.strip, lines[:begin])):
        return 0
    return len("\n".join(lines[: begin + count]))
