"""From what the model wrote to what is shown: pure filters, one per file, in order."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess import (
    blank,
    brackets,
    echo,
    indentation,
    leading_blank,
    length,
    line_ends,
    mid_line,
    specials,
    suffix_overlap,
    trailing_space,
)
from completion.postprocess.base import Around as Around
from completion.postprocess.base import Filter
from completion.types import Reason

# Run once, before an answer is kept: what the user types is compared with the answer as it is shown.
BEGINNING: tuple[Filter, ...] = (
    line_ends.normalise,
    specials.cut,
    echo.drop,
    indentation.once,
    leading_blank.drop,
)

# Run each time an answer is used.
PIPELINE: tuple[Filter, ...] = (
    blank.drop,  # here too, so that silence of the model is not taken for a duplicate
    length.cap,
    brackets.cut,
    mid_line.meets,
    suffix_overlap.cut,
    mid_line.fit,
    trailing_space.trim,
    blank.drop,
)


def begin(text: str, around: Around) -> str:
    for apply in BEGINNING:
        result = apply(text, around)
        if isinstance(result, Reason):
            return ""
        text = result
    return text


def finish(text: str, around: Around, typed: int = 0) -> str | Reason:
    """What is shown of `text`, of which the user has typed `typed` code points; they end `around`'s prefix.

    The filters see the answer whole and at the place it was made for, so that typing does not change their minds.
    """
    asked = around
    if typed:
        window = around.window
        asked = replace(around, window=replace(window, prefix=window.prefix[: len(window.prefix) - typed]))
    for apply in PIPELINE:
        result = apply(text, asked)
        if isinstance(result, Reason):
            return result
        text = result
    return line_ends.restore(text[typed:], around) or Reason.EMPTY
