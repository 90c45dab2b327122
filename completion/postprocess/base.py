"""What a filter is, and what filters leave of an answer. Must not know any filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.types import Reason, Window


@dataclass(frozen=True, slots=True)
class Around:
    """What a filter may look at. `specials` are tokens that no answer should hold.

    `blind`: the model did not see what follows the cursor; `automatic`: nobody asked for a suggestion; `deleted`: what
    the user has just taken away at the cursor.
    """

    window: Window
    specials: tuple[str, ...] = ()
    language_id: str = ""
    blind: bool = False
    automatic: bool = False
    deleted: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` that takes the place of what stands beside the cursor on its line, too.

    Code points: `before` the cursor, all of them white space of its line's beginning, or `after` it.
    """

    text: str
    before: int = 0
    after: int = 0


# Pure, and linear in the answer: most run again whenever an answer is taken from the cache. A Reason means: nothing
# worth showing.
Filter = Callable[[str, Around], str | Edit | Reason]


@dataclass(frozen=True, slots=True)
class Finished:
    """What is shown of an answer, or, with a `reason`, why nothing is. `before` and `after` are as in `Edit`.

    `filters`: the names of those that changed or silenced it, in their order.
    """

    text: str
    before: int = 0
    after: int = 0
    reason: Reason | None = None
    filters: tuple[str, ...] = ()
