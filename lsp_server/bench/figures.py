"""What a bench found: a number, its unit, the bar it is held to. Knows no bench."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lsp_server.bench.table import table


@dataclass(frozen=True, slots=True)
class Figure:
    """`value` is None where it was left out; `note` says why, or how it came about.

    `bar` is the goal: with `at_least` the value must not be lower, else not higher. None: there is none.
    """

    name: str
    value: float | None
    unit: str = ""
    bar: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.value is None or self.bar is None:
            return None
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


_MET = {True: "met", False: "missed", None: ""}


def shown(figures: Sequence[Figure]) -> str:
    """A table, with what was left out below it."""
    rows = [
        (each.name, f"{each.value:.3g}" if each.value < 100 else f"{each.value:.0f}", each.unit, _goal(each), each.note)
        for each in figures
        if each.value is not None
    ]
    left_out = [f"left out: {each.name}: {each.note}" for each in figures if each.value is None]
    return "\n".join((table(("", "value", "unit", "goal", "note"), rows, left=(0, 2, 3, 4)), *left_out))


def _goal(figure: Figure) -> str:
    if figure.bar is None:
        return ""
    return f"{'≥' if figure.at_least else '≤'} {figure.bar:g} {_MET[figure.met]}"
