"""Several answers to one question, and which suggestion is still the same one."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from backends.base import Delta, Finish
from backends.scripted import Script
from completion.types import Completion, Trigger
from tests.completion.desk import LOCAL, Desk

SEVERAL = replace(LOCAL, several=True)
URI = "file:///a.py"


def several(*texts: str) -> Script:
    return [*(Delta(each, index=index) for index, each in enumerate(texts)), Delta("", Finish.STOP)]


async def test_asked_by_hand_there_are_several_to_choose_from() -> None:
    desk = Desk(several("one()", "two()", "one()"), capabilities=SEVERAL)
    found = await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=8)
    assert isinstance(found, Completion)
    assert (found.text, [other.text for other in found.others]) == ("one()", ["two()"])
    assert len({found.id, *(other.id for other in found.others)}) == 2
    assert [request.candidates for request in desk.backend.requests] == [3]
    again = await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=8)
    assert isinstance(again, Completion)
    assert again.text == "one()"
    assert len(desk.backend.requests) == 1


async def test_a_suggestion_that_is_typed_stays_the_same_one() -> None:
    desk = Desk(several("one()", "two()"), capabilities=SEVERAL)

    async def ids(marked: str, **more: Any) -> list[str]:
        outcome = await desk.ask(marked, **more)
        assert isinstance(outcome, Completion)
        return [each.id for each in (outcome, *outcome.others)]

    assert await ids("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=8) == ["1", "1.2"]
    assert await ids("x = o⟦|⟧\n") == ["1"]
    assert await ids("x = t⟦|⟧\n") == ["1.2"], "the other one was chosen"
    assert await ids("x = tw⟦|⟧\n") == ["1.2"]
    assert await ids("x = ⟦|⟧\n") == ["5"], "it is suggested anew"
    assert await ids("x = o⟦|⟧\n") == ["5"]
    assert await ids("y = ⟦|⟧\n") == ["7"]
    desk.engine.forget(URI)
    assert await ids("y = o⟦|⟧\n") == ["8"]


async def test_of_a_backend_that_writes_one_several_are_asked_for_at_once() -> None:
    answers = iter(["one()", "two()", "one()"])
    desk = Desk(lambda _: [next(answers)])
    found = await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=3)
    assert isinstance(found, Completion)
    assert (found.text, [other.text for other in found.others]) == ("one()", ["two()"])
    assert [request.temperature > 0 for request in desk.backend.requests] == [False, True, True]


@pytest.mark.parametrize(
    ("trigger", "candidates", "most"), [(Trigger.AUTOMATIC, 8, 3), (Trigger.INVOKED, 1, 3), (Trigger.INVOKED, 8, 1)]
)
async def test_otherwise_there_is_one(trigger: Trigger, candidates: int, most: int) -> None:
    desk = Desk(["one()"], max_candidates=most)
    found = await desk.ask("x = ⟦|⟧\n", trigger=trigger, candidates=candidates)
    assert isinstance(found, Completion)
    assert found.others == ()
    assert [request.candidates for request in desk.backend.requests] == [1]


async def test_each_of_several_is_stopped_by_itself() -> None:
    never = asyncio.Event()
    script = [Delta("a\nz", index=0), Delta("b", index=1), Delta("\nz", index=1), never]
    desk = Desk(script, capabilities=SEVERAL, max_candidates=2, multiline="never")
    found = await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=2)
    assert isinstance(found, Completion)
    assert [found.text, *(other.text for other in found.others)] == ["a", "b"]
    assert desk.backend.closed == 1
