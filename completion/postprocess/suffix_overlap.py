"""The answer's end must not repeat what already follows the cursor: the rest of the line, or the lines below.

Closing brackets and quotes that belong to what the answer itself opens are not taken for a repetition.
"""

from __future__ import annotations

from completion.postprocess.base import Around
from completion.types import Reason, Window

_PAIRS = {")": "(", "]": "[", "}": "{"}
_QUOTES = "\"'`"

# Lines below that are compared; an answer repeats the nearest ones.
_BELOW = 20

# An overlap with part of the rest of the line is taken for one from so many characters on, if it holds words. A line
# below is recognised with another indentation from so many on.
_WORDS = 3
_TELLING = 16


def cut(text: str, around: Around) -> str | Reason:
    window = around.window
    shorter = _before_rest(text, window.rest.rstrip()) if window.rest.strip() else _before_lines_below(text, window)
    if shorter != text and not shorter.strip():
        return Reason.DUPLICATE_OF_SUFFIX
    return shorter


def _before_rest(text: str, rest: str) -> str:
    """Without an end that repeats the beginning of `rest`, the longest one that may go."""
    first, newline, _ = text.partition("\n")
    if newline and rest.strip() and not any(map(_word, rest)) and first.rstrip().endswith(rest):
        # The model closed the line itself and went on below: what follows belongs behind the brackets.
        cut_at = len(first.rstrip()) - len(rest)
        if not _closes_own(first, cut_at):
            return first[:cut_at]
    bare = text.rstrip()
    if bare.strip() == rest.strip():
        return ""
    for length in range(min(len(rest), len(bare)), 0, -1):
        cut_at = len(bare) - length
        if bare.endswith(rest[:length]) and _worth(bare, rest, length) and not _closes_own(bare, cut_at):
            return bare[:cut_at]
    return text


def _worth(bare: str, rest: str, length: int) -> bool:
    overlap = rest[:length]
    if length == len(rest) or not any(map(_word, overlap)):
        return True
    cut_at = len(bare) - length
    begins_word = cut_at == 0 or not (_word(bare[cut_at - 1]) and _word(overlap[0]))
    ends_word = not (_word(overlap[-1]) and _word(rest[length]))
    return len(overlap.strip()) >= _WORDS and begins_word and ends_word


def _before_lines_below(text: str, window: Window) -> str:
    """Without last lines that equal the first lines below, blank ones aside."""
    below = [line.rstrip() for line in window.suffix.split("\n")[1:] if line.strip()][:_BELOW]
    lines = (window.lead + text).split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    for count in range(min(len(filled), len(below)), 0, -1):
        first = filled[-count]
        if all(_same(lines[number], other) for number, other in zip(filled[-count:], below, strict=False)):
            cut_at = max(0, len("\n".join(lines[:first])) - len(window.lead)) if first else 0
            if not _closes_own(text, cut_at):
                return text[:cut_at]
    return text


def _same(line: str, below: str) -> bool:
    line = line.rstrip()
    return line == below or (len(below.strip()) >= _TELLING and line.strip() == below.strip())


def _closes_own(text: str, cut_at: int) -> bool:
    """Whether `text[cut_at:]` closes a bracket or a quote that `text[:cut_at]` opens."""
    opened: list[tuple[str, int]] = []
    quotes: dict[str, int] = {}
    for at, character in enumerate(text):
        if character == "\n":
            quotes.clear()
        elif character in _QUOTES and not _apostrophe(text, at):
            begin = quotes.pop(character, None)
            if begin is None:
                quotes[character] = at
            elif begin < cut_at <= at:
                return True
        elif character in "([{":
            opened.append((character, at))
        elif character in _PAIRS and opened and opened[-1][0] == _PAIRS[character]:
            begin = opened.pop()[1]
            if begin < cut_at <= at:
                return True
    return False


def _apostrophe(text: str, at: int) -> bool:
    """Within a word, or escaped."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    return before == "\\" or (text[at] == "'" and before.isalnum() and after.isalnum())


def _word(character: str) -> bool:
    return character == "_" or character.isalnum()
