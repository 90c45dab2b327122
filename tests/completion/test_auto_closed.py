"""Brackets and quotes that the editor closes while a suggestion is typed."""

from __future__ import annotations

import asyncio

import pytest

from completion import auto_closed
from completion.types import Completion, Reason
from tests.completion.desk import Desk, context, reason


async def test_brackets_the_editor_closes_are_joined_and_found_and_replaced() -> None:
    more = asyncio.Event()
    desk = Desk(['compute("a', more, '", b)'])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    desk.engine.edited("file:///a.py", lambda: context("x = compute(⟦|⟧)\n").document)
    newer = desk.begin("x = compute(⟦|⟧)\n")
    assert reason(await older) is Reason.SUPERSEDED
    more.set()
    found = await newer
    assert isinstance(found, Completion)
    assert (found.text, found.start, found.end) == ('"a", b)', 12, 13)
    found = await desk.ask('x = compute("⟦|⟧")\n')
    assert isinstance(found, Completion)
    assert (found.text, found.start, found.end) == ('a", b)', 13, 15)
    assert desk.trace is not None
    assert desk.trace.cache == "typed-through"
    assert len(desk.backend.requests) == 1
    await desk.ask("x = compute⟦|⟧)\n")  # a bracket that was not opened by what was typed
    assert len(desk.backend.requests) == 2


@pytest.mark.parametrize(
    ("typed", "after", "expected"),
    [
        ("f(", ")", 1),
        ("f(", ") + 1", 1),
        ("f([", "])", 2),
        ('f(a["', '"])', 3),
        ("f(a)", ")", 0),
        ("f", ")", 0),
        ('"', '"', 1),
        ('"a"', '"', 0),
        ("f(", "]", 0),
        ("", ")", 0),
        ("f(", "", 0),
    ],
)
def test_what_closes_what_was_typed(typed: str, after: str, expected: int) -> None:
    assert auto_closed.behind(typed, after) == expected
