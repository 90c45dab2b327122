"""Where secrets stand in one line, and of what kind they are. Must not know what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from completion.privacy.entropy import random_runs
from completion.privacy.named import NEEDLES, named
from completion.privacy.shapes import SHAPES

Found = tuple["Span", ...]


class Span(NamedTuple):
    """Code points start to end, `end` not included."""

    start: int
    end: int
    kind: str


def secrets_in(line: str) -> Found:
    """In order, none within another one."""
    spans = sorted(_all(line), key=lambda span: (span.start, -span.end))
    kept: list[Span] = []
    for span in spans:
        if kept and span.start < kept[-1].end:
            kept[-1] = kept[-1]._replace(end=max(kept[-1].end, span.end))
        else:
            kept.append(span)
    return tuple(kept)


def _all(line: str) -> Iterator[Span]:
    for shape in SHAPES:
        if shape.needle in line:
            for match in shape.pattern.finditer(line):
                yield Span(*match.span(1), shape.kind)
    lowered = line.lower()
    if any(needle in lowered for needle in NEEDLES):
        for start, end in named(line):
            yield Span(start, end, "named secret")
    for start, end in random_runs(line):
        yield Span(start, end, "random text")
