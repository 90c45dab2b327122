"""Each fate of a suggestion counts once, and only for suggestions that were made."""

from __future__ import annotations

from lsp_server.tally import Tally


def test_counts_once() -> None:
    tally = Tally()
    tally.offered("a")
    tally.offered("b")
    for _ in range(2):
        tally.display("a")
        tally.accept_part("a")
        tally.accept("a")
        tally.reject("b")
    assert tally.counts() == {"displayed": 1, "accepted": 1, "partiallyAccepted": 1, "rejected": 1, "languages": {}}


def test_what_is_learned_is_learned_by_language_and_only_where_it_may_be() -> None:
    tally = Tally()
    tally.offered("a", "python")
    tally.offered("b")
    for suggestion in ("a", "b", "unknown"):
        tally.display(suggestion)
        tally.reject(suggestion)
    assert tally.learned.counts() == {"python": {"shown": 1, "accepted": 0, "partiallyAccepted": 0, "rejected": 1}}


def test_unknown_and_forgotten_ids_do_not_count() -> None:
    tally = Tally()
    tally.accept("never")
    for number in range(600):
        tally.offered(str(number))
    tally.accept("0")
    assert tally.accepted == 0
    tally.accept("599")
    assert tally.accepted == 1
