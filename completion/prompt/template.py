"""Fills a family's template with pieces. Must not know which families there are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from backends.base import Piece

Filler = Mapping[str, str | tuple[Piece, ...]]


def render(template: str, specials: tuple[str, ...], filler: Filler) -> tuple[Piece, ...]:
    """`template` with each `{name}` replaced by its filling; special tokens become special pieces."""
    pieces: list[Piece] = []
    for part in _parts(template, specials):
        filling = filler.get(part[1:-1]) if part.startswith("{") else None
        if filling is None:
            pieces.append(Piece(part, special=part in specials))
        elif isinstance(filling, str):
            pieces.append(Piece(filling))
        else:
            pieces.extend(filling)
    return tuple(pieces)


@lru_cache(maxsize=256)
def _parts(template: str, specials: tuple[str, ...]) -> tuple[str, ...]:
    longest_first = sorted(specials, key=len, reverse=True)
    pattern = "|".join((r"\{[a-z]+\}", *map(re.escape, longest_first)))
    return tuple(part for part in re.split(f"({pattern})", template) if part)
