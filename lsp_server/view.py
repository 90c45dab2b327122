"""Code that is no document of its own: a cell of a notebook, a string in JSON. Must not know which of them it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from completion.types import Completion, CompletionContext, NoSuggestion, Outcome, Reason


@dataclass(frozen=True, slots=True)
class View:
    """What the engine is asked in place of a document, and the way back to the document.

    `back` gives None for what would reach outside of the code.
    """

    context: CompletionContext
    back: Callable[[Completion], Completion | None]

    def outcome(self, found: Outcome) -> Outcome:
        """What was found, as an answer for the document."""
        if isinstance(found, NoSuggestion):
            return found
        return self.back(found) or NoSuggestion(Reason.OUTSIDE_CODE, "the answer would reach outside of the code")
