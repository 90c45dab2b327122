"""How long the engine waits for the next key."""

from __future__ import annotations

import pytest

from completion.rhythm import Rhythm

BASE = 0.12


def typed(pause: float, keys: int = 20) -> Rhythm:
    rhythm = Rhythm()
    for key in range(keys):
        rhythm.key(100 + key * pause)
    return rhythm


def test_nothing_is_known_of_somebody_who_has_not_typed() -> None:
    assert Rhythm().wait(BASE, "x = y;", "", ()) == BASE
    assert typed(0.04, keys=3).wait(BASE, "x = y;", "", ()) == BASE
    assert typed(0.9).wait(BASE, "x = y;", "", ()) == BASE  # these are no keys of one word


@pytest.mark.parametrize("pause", [0.03, 0.06, 0.1, 0.15, 0.2])
def test_no_request_is_begun_between_two_keys_of_one_run(pause: float) -> None:
    assert typed(pause).wait(BASE, "x = (", "", (9.0,)) > pause


def test_quick_keys_make_it_shorter_and_slow_ones_longer() -> None:
    assert typed(0.03).wait(BASE, "x = y;", "", ()) == pytest.approx(BASE / 2)
    assert typed(0.08).wait(BASE, "x = y;", "", ()) == pytest.approx(BASE)
    assert typed(0.3).wait(BASE, "x = y;", "", ()) == pytest.approx(BASE * 2)


def test_the_place_counts() -> None:
    def wait(lead: str, rest: str = "") -> float:
        return Rhythm().wait(BASE, lead, rest, ())

    assert wait("") == wait("    ") == wait("f(") == wait("if x: ") < wait("x = y;")
    assert wait("x = valu") > wait("x = y;")
    assert wait("f(", "value)") > wait("f(", ")")


def test_a_slow_service_is_asked_sooner_but_not_at_once() -> None:
    waits = [Rhythm().wait(BASE, "x = y;", "", latencies) for latencies in ((), (0.05,), (0.3,), (5.0, 4.0, 6.0))]
    assert waits == sorted(waits, reverse=True)
    assert waits[-1] == pytest.approx(BASE * 0.6)


def test_patience_makes_it_longer() -> None:
    assert Rhythm().wait(BASE, "x = y;", "", (), patience=2.0) == pytest.approx(2 * BASE)


def test_no_wait_is_asked_for_none() -> None:
    assert typed(0.05).wait(0, "x = y;", "", ()) == 0
