"""Where secrets stand in one line, and of what kind they are. Must not know what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from completion.privacy.entropy import random_runs
from completion.privacy.named import named
from completion.privacy.shapes import SHAPES, Shape

Found = tuple["Span", ...]


class Span(NamedTuple):
    """Code points start to end, `end` not included."""

    start: int
    end: int
    kind: str


def shapes_in(text: str) -> tuple[Shape, ...]:
    """Those of which one may be in a line of the text."""
    return tuple(shape for shape in SHAPES if shape.needle in text)


def secrets_in(line: str, shapes: Iterable[Shape] = SHAPES) -> Found:
    """In order, none within another one."""
    spans = sorted(_all(line, shapes), key=lambda span: (span.start, -span.end))
    kept: list[Span] = []
    for span in spans:
        if kept and span.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, span.end))
        else:
            kept.append(span)
    return tuple(kept)


def _all(line: str, shapes: Iterable[Shape]) -> Iterator[Span]:
    for shape in shapes:
        if shape.needle in line:
            for match in shape.pattern.finditer(line):
                yield Span(*match.span(1), shape.kind)
    for start, end in named(line):
        yield Span(start, end, "named secret")
    for start, end in random_runs(line):
        yield Span(start, end, "random text")
