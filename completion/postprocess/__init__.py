"""From what the model wrote to what is shown: pure filters, one per file, in this order."""

from __future__ import annotations

from completion.postprocess import (
    blank,
    indentation,
    leading_blank,
    line_ends,
    specials,
    suffix_overlap,
    trailing_space,
)
from completion.postprocess.base import Around as Around
from completion.postprocess.base import Filter
from completion.types import Reason

PIPELINE: tuple[Filter, ...] = (
    line_ends.normalise,
    specials.cut,
    blank.drop,  # here too, so that silence of the model is not taken for a duplicate
    indentation.once,
    leading_blank.drop,
    suffix_overlap.cut,
    trailing_space.trim,
    blank.drop,
    line_ends.restore,  # last: all others see `\n` only
)


def run(text: str, around: Around) -> str | Reason:
    result: str | Reason = text
    for apply in PIPELINE:
        result = apply(result, around)
        if isinstance(result, Reason):
            break
    return result
