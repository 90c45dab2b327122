"""From what the model wrote to what is shown: pure filters, one per file, in order."""

from __future__ import annotations

from dataclasses import replace

from completion.postprocess import (
    blank,
    closers,
    dedent,
    echo,
    finished,
    indentation,
    just_deleted,
    leading_blank,
    length,
    line_ends,
    mid_line,
    prefix_overlap,
    repetition,
    specials,
    suffix_overlap,
    talk,
    trailing_space,
    unit,
)
from completion.postprocess.base import Around as Around
from completion.postprocess.base import Edit, Filter
from completion.postprocess.base import Finished as Finished
from completion.types import Reason

# Run once, before an answer is kept: what the user types is compared with the answer as it is shown.
BEGINNING: tuple[Filter, ...] = (
    line_ends.normalise,
    specials.cut,
    echo.drop,
    unit.fit,
    indentation.once,
    leading_blank.drop,
)

# Run each time an answer is used.
PIPELINE: tuple[Filter, ...] = (
    blank.drop,  # here too, so that silence of the model is not taken for a duplicate
    length.cap,
    talk.drop,
    repetition.cut,
    finished.drop,
    prefix_overlap.drop,
    dedent.fit,
    mid_line.meets,
    suffix_overlap.cut,
    closers.cover,
    mid_line.fit,
    trailing_space.trim,
    just_deleted.drop,
    blank.drop,
)


def begin(text: str, around: Around) -> Finished:
    acted: list[str] = []
    for apply in BEGINNING:
        result = apply(text, around)
        if result is not text and result != text:
            acted.append(name_of(apply))
        if isinstance(result, Reason):
            return Finished("", filters=tuple(acted))
        text = result.text if isinstance(result, Edit) else result
    return Finished(text, filters=tuple(acted))


def finish(text: str, around: Around, typed: int = 0) -> Finished:
    """What is shown of `text`, of which the user has typed `typed` code points; they end `around`'s prefix.

    The filters see the answer whole and at the place it was made for, so that typing does not change their minds.
    """
    asked = around
    if typed:
        window = around.window
        asked = replace(around, window=replace(window, prefix=window.prefix[: len(window.prefix) - typed]))
    acted: list[str] = []
    before = after = 0
    for apply in PIPELINE:
        result = apply(text, asked)
        if result is text:
            continue
        if result != text:
            acted.append(name_of(apply))
        if isinstance(result, Reason):
            return Finished("", reason=result, filters=tuple(acted))
        if isinstance(result, Edit):
            text, before, after = result.text, before + result.before, after + result.after
            asked = _without(asked, result)
        else:
            text = result
    if before:  # what was typed stands behind the white space that is replaced
        before += typed
    else:
        text = text[typed:]
    text = line_ends.restore(text, around)
    return Finished(text, before, after, None if text else Reason.EMPTY, tuple(acted))


def _without(around: Around, edit: Edit) -> Around:
    """What stands beside the cursor once `edit` has taken the place of the nearest part of it."""
    window = around.window
    prefix = window.prefix[: len(window.prefix) - edit.before]
    return replace(around, window=replace(window, prefix=prefix, suffix=window.suffix[edit.after :]))


def name_of(apply: Filter) -> str:
    """A filter goes by its file's name."""
    return apply.__module__.rpartition(".")[2]
