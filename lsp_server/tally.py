"""What became of suggestions: counted once each. Knows nothing of LSP."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from completion.learning import Learned

_REMEMBERED = 500  # suggestions; what is older is no longer on any screen


class Tally:
    """`learned` is told, too, language by language."""

    def __init__(self, learned: Learned | None = None) -> None:
        self.learned = learned or Learned()
        self.displayed = 0
        self.accepted = 0
        self.partially_accepted = 0
        self.rejected = 0
        # id -> its language, and what it was counted for
        self._fates: OrderedDict[str, tuple[str, set[str]]] = OrderedDict()

    def offered(self, suggestion_id: str, language_id: str = "") -> None:
        """The suggestion was sent; a suggestion that is sent again from the cache is still the same.

        Without a language nothing is learned from what becomes of it.
        """
        self._fates.setdefault(suggestion_id, (language_id, set()))
        self._fates.move_to_end(suggestion_id)
        if len(self._fates) > _REMEMBERED:
            self._fates.popitem(last=False)

    def display(self, suggestion_id: str) -> None:
        language = self._first(suggestion_id, "displayed")
        if language is not None:
            self.displayed += 1
            if language:
                self.learned.shown(language)

    def accept(self, suggestion_id: str) -> None:
        language = self._first(suggestion_id, "accepted")
        if language is not None:
            self.accepted += 1
            if language:
                self.learned.accepted(language)

    def reject(self, suggestion_id: str) -> None:
        language = self._first(suggestion_id, "rejected")
        if language is not None:
            self.rejected += 1
            if language:
                self.learned.rejected(language)

    def accept_part(self, suggestion_id: str) -> None:
        language = self._first(suggestion_id, "partially accepted")
        if language is not None:
            self.partially_accepted += 1
            if language:
                self.learned.accepted(language, partly=True)

    def _first(self, suggestion_id: str, fate: str) -> str | None:
        """The language of a suggestion that was offered, if this fate is new for it."""
        language, fates = self._fates.get(suggestion_id, ("", None))
        if fates is None or fate in fates:
            return None
        fates.add(fate)
        return language

    def counts(self) -> dict[str, Any]:
        return {
            "displayed": self.displayed,
            "accepted": self.accepted,
            "partiallyAccepted": self.partially_accepted,
            "rejected": self.rejected,
            "languages": self.learned.counts(),
        }
