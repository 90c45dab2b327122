"""The contract as a whole: every kind has a service, every case runs, the page shows the table."""

from __future__ import annotations

from backends import registry
from tests.backends.contract import CASES, LOCAL, WITHOUT, kind_of, kinds, table


def test_every_kind_has_a_service() -> None:
    assert set(registry.KINDS) >= LOCAL.keys()
    for name in kinds():
        found = kind_of(name)
        assert found.model is not None
        assert not found.settings.keys() & {"kind", "url", "model", "key_env"}


def test_what_a_kind_is_without_concerns_cases() -> None:
    table()
    needed = {need for case in CASES.values() for need in case.needs}
    assert WITHOUT.keys() <= set(kinds())
    assert {ability for lacks in WITHOUT.values() for ability in lacks} <= needed


def test_the_table() -> None:
    shown = table()
    print(shown)
    lines = shown.split("\n")
    assert len([line for line in lines if line.startswith("| ")]) == len(CASES) + 1
    assert all(f"`{name}`" in lines[0] for name in kinds())
