"""Draws a screen of cells as SVG. Must not know whose screen it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

_WIDTH, _HEIGHT, _MARGIN = 8, 18, 14  # of a cell, pixels


@dataclass(frozen=True, slots=True)
class Look:
    """Colours as `#rrggbb`; an empty background is the picture's own."""

    foreground: str
    background: str = ""


Drawn = tuple[str, Look]  # a character with what combines with it, empty behind a wide one, and its colours


def svg(title: str, rows: Sequence[Sequence[Drawn]], cursor: tuple[int, int], base: Look) -> str:
    """A picture of these rows with a cursor at (row, column), on `base`'s background."""
    width, height = len(rows[0]) * _WIDTH + 2 * _MARGIN, len(rows) * _HEIGHT + 2 * _MARGIN
    x, y = _MARGIN + cursor[1] * _WIDTH, _MARGIN + cursor[0] * _HEIGHT
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
            f'  <rect width="{width}" height="{height}" rx="8" fill="{base.background}"/>',
            '  <g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="13" xml:space="preserve">',
            *(f"    {text}" for at, row in enumerate(rows) for text in _texts(at, row)),
            "  </g>",
            f'  <rect x="{x}" y="{y + 2}" width="2" height="{_HEIGHT - 3}" fill="{base.foreground}"/>',
            "</svg>",
            "",
        ]
    )


def _texts(row: int, cells: Sequence[Drawn]) -> Iterator[str]:
    """Runs of one look, each where it belongs."""
    column = 0
    for look, group in groupby(cells, key=lambda cell: cell[1]):
        texts = [text for text, _ in group]
        if look.background:
            x, y = _MARGIN + column * _WIDTH, _MARGIN + row * _HEIGHT
            size = f'width="{len(texts) * _WIDTH}" height="{_HEIGHT}"'
            yield f'<rect x="{x}" y="{y}" {size} fill="{look.background}"/>'
        places = [at for at, text in enumerate(texts) for _ in text] + [len(texts)]  # of each character in the run
        for found in re.finditer(r"\S+(?: \S+)*", "".join(texts)):
            first, stop = places[found.start()], places[found.end()]
            x, y = _MARGIN + (column + first) * _WIDTH, _MARGIN + row * _HEIGHT + 13
            length = (stop - first) * _WIDTH
            yield f'<text x="{x}" y="{y}" textLength="{length}" fill="{look.foreground}">{escape(found[0])}</text>'
        column += len(texts)
