"""Tables for a terminal. Knows no bench."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they must be: the first to the left, the others to the right. No line end at the end."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        others = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join((cells[0].ljust(widths[0]), *others)).rstrip()

    return "\n".join(map(line, (heads, *rows)))


def number(value: float | None, digits: int = 1) -> str:
    """`-` for what was not measured."""
    return "-" if value is None else f"{value:.{digits}f}"
