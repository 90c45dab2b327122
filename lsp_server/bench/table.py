"""Tables for a terminal. Knows no bench."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> str:
    """Columns as wide as they must be: those in `left` begin alike, the others end alike. No line end at the end."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "  ".join(padded).rstrip()

    return "\n".join(map(line, (heads, *rows)))


def number(value: float | None, digits: int = 1) -> str:
    """`-` for what was not measured."""
    return "-" if value is None else f"{value:.{digits}f}"
