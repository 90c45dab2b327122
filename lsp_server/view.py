"""Code that is no document of its own: a cell of a notebook, a string in JSON. Must not know which of them it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from completion.types import Completion, CompletionContext, NoSuggestion, Outcome, Reason


@dataclass(frozen=True, slots=True)
class View:
    """What the editor asks of a document, what the engine is asked for it, and the way back to the document.

    `back` gives None for what would reach outside of the code. Most documents are the code themselves.
    """

    asked: CompletionContext
    context: CompletionContext
    back: Callable[[Completion], Completion | None] | None = None

    def outcome(self, found: Outcome) -> Outcome:
        """What was found, as an answer for the document."""
        if isinstance(found, NoSuggestion) or self.back is None:
            return found
        fitting = [there for each in (found, *found.others) if (there := self.back(each)) is not None]
        if not fitting:
            return NoSuggestion(Reason.OUTSIDE_CODE, "the answer would reach outside of the code")
        return replace(fitting[0], others=tuple(fitting[1:]))
