"""What the form of one line says: indentation, comment, whether it opens a block. Must not know documents."""

from __future__ import annotations

import re
from functools import lru_cache

from completion.languages import comment_marks
from completion.types import Window

_TAB = 8  # columns; only compared with other indentation

# At the line's end, in any language: brackets, and words that are seldom anything else.
_OPEN = re.compile(r"(?:[:{(\[]|=>|->|=|\b(?:do|then|else|begin|repeat|loop|where|of))(?:\s*\|[^|]*\|)?\Z", re.I)
# At its beginning, where a word and not a bracket ends the block.
_BEGIN = re.compile(
    r"(?:def|defp|defmodule|class|module|if|unless|elsif|elseif|while|until|for|case|when|begin|rescue|ensure|struct"
    r"|macro|switch|try|catch|(?:local )?function)\b|.*\bfunction\b[^()]*\([^()]*\)\Z"
)
_ENDED = re.compile(r".*\b(?:end|fi|done|esac)\b[;)]*\Z")
_WORDY = frozenset({"ruby", "crystal", "elixir", "lua", "julia", "matlab", "shellscript", "fish"})


def lines_above(window: Window, count: int) -> list[str]:
    """The last `count` lines with text before the cursor's, without the white space around them."""
    lines = window.prefix.rsplit("\n", 2 * count)[:-1]  # twice as many: some are blank
    if len(lines) == 2 * count:
        del lines[0]  # all the rest
    return [bare for line in lines if (bare := line.strip())][-count:]


def columns(line: str) -> int:
    """The width of a line's indentation."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(_TAB))


def bare(line: str, language_id: str) -> str:
    """A line without its indentation and without the comment at its end. Empty if it is a comment.

    A mark of comments counts only behind white space: in a text between quotes it is taken for one all the same.
    """
    return _comment(language_id).sub("", line).strip()


def opens(line: str, language_id: str) -> bool:
    """Whether what follows `line` belongs to it and is indented deeper."""
    code = bare(line, language_id)
    if _OPEN.search(code):
        return True
    return language_id in _WORDY and bool(_BEGIN.match(code)) and not _ENDED.match(code)


@lru_cache(maxsize=64)
def _comment(language_id: str) -> re.Pattern[str]:
    before, after = comment_marks(language_id)
    if after:
        return re.compile(rf"(?:^|(?<=\s)){re.escape(before.strip())}.*{re.escape(after.strip())}\s*\Z")
    return re.compile(rf"(?:^|(?<=\s)){re.escape(before.strip())}.*")
