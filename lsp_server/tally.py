"""What became of suggestions: counted once each. Knows nothing of LSP."""

from __future__ import annotations

from collections import OrderedDict

_REMEMBERED = 500  # suggestions; what is older is no longer on any screen


class Tally:
    def __init__(self) -> None:
        self.displayed = 0
        self.accepted = 0
        self.partially_accepted = 0
        self.rejected = 0
        self._fates: OrderedDict[str, set[str]] = OrderedDict()  # id -> what it was counted for

    def offered(self, suggestion_id: str) -> None:
        """The suggestion was sent; a suggestion that is sent again from the cache is still the same."""
        self._fates.setdefault(suggestion_id, set())
        self._fates.move_to_end(suggestion_id)
        if len(self._fates) > _REMEMBERED:
            self._fates.popitem(last=False)

    def display(self, suggestion_id: str) -> None:
        self.displayed += self._first(suggestion_id, "displayed")

    def accept(self, suggestion_id: str) -> None:
        self.accepted += self._first(suggestion_id, "accepted")

    def reject(self, suggestion_id: str) -> None:
        self.rejected += self._first(suggestion_id, "rejected")

    def accept_part(self, suggestion_id: str) -> None:
        self.partially_accepted += self._first(suggestion_id, "partially accepted")

    def _first(self, suggestion_id: str, fate: str) -> bool:
        """Whether this fate is new for a suggestion that was offered."""
        fates = self._fates.get(suggestion_id)
        if fates is None or fate in fates:
            return False
        fates.add(fate)
        return True

    def counts(self) -> dict[str, int]:
        return {
            "displayed": self.displayed,
            "accepted": self.accepted,
            "partiallyAccepted": self.partially_accepted,
            "rejected": self.rejected,
        }
