"""Switches filters of the engine off, one at a time, to see what each is worth. Knows no bench."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from completion import postprocess
from completion.postprocess.base import Filter


def name_of(step: Filter) -> str:
    module = step.__module__.rpartition(".")[2]
    return f"{module}.{getattr(step, '__name__', '')}"


def each() -> dict[str, bool]:
    """Names of all filters in their order; whether one runs before an answer is kept in the cache."""
    return {name_of(step): step in postprocess.BEGINNING for step in (*postprocess.BEGINNING, *postprocess.PIPELINE)}


@contextmanager
def without(name: str) -> Iterator[None]:
    """All engines of this process do without the filter. It is back afterwards, whatever happens."""
    kept = postprocess.BEGINNING, postprocess.PIPELINE
    postprocess.BEGINNING = tuple(step for step in kept[0] if name_of(step) != name)
    postprocess.PIPELINE = tuple(step for step in kept[1] if name_of(step) != name)
    try:
        yield
    finally:
        postprocess.BEGINNING, postprocess.PIPELINE = kept
