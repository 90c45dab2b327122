"""What a filter is. Must not know any filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.types import Reason, Window


@dataclass(frozen=True, slots=True)
class Around:
    """What a filter may look at. `specials` are tokens that no answer should hold."""

    window: Window
    specials: tuple[str, ...] = ()


# Pure and quick: most run again whenever an answer is taken from the cache. A Reason means: nothing worth showing.
Filter = Callable[[str, Around], str | Reason]
