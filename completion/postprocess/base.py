"""What a filter is. Must not know any filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.types import Reason, Window


@dataclass(frozen=True, slots=True)
class Around:
    """What a filter may look at. `specials` are tokens that no answer should hold.

    `blind`: the model did not see what follows the cursor; `automatic`: nobody asked for a suggestion.
    """

    window: Window
    specials: tuple[str, ...] = ()
    language_id: str = ""
    blind: bool = False
    automatic: bool = False


# Pure and quick: most run again whenever an answer is taken from the cache. A Reason means: nothing worth showing.
Filter = Callable[[str, Around], str | Reason]
