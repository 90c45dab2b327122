"""The request policy where things go wrong: answers that turn out different, fail in part, or are ended halfway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace

import pytest

from backends.base import BackendError, BackendRequest, Capabilities, Delta, ErrorKind, Finish, Shape
from backends.scripted import CUT_OFF, Script, ScriptedBackend
from completion.engine import Engine
from completion.flight import _COLD_S, _GRACE_S
from completion.learning import Learned
from completion.settings import CompletionSettings, EngineSettings
from completion.types import Completion, Outcome, Reason, Selected, Trigger
from tests.completion.desk import LOCAL, Desk, context, reason

REMOTE = Capabilities(frozenset({Shape.INFILL}), remote=True)
SEVERAL = replace(LOCAL, several=True)
URI = "file:///a.py"


class SlowToEnd(ScriptedBackend):
    """Writes something, and when it is ended, takes a while to close its connection."""

    alive = 0

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        self.alive += 1
        try:
            async with aclosing(super().stream(request)) as deltas:
                async for delta in deltas:
                    yield delta
        finally:
            for _ in range(20):
                await asyncio.sleep(0)
            self.alive -= 1


def slow(desk: Desk, script: Callable[[BackendRequest], Script], speculate: str = "never") -> SlowToEnd:
    """Put such a backend in the place of the desk's own."""
    backend = SlowToEnd(script=script, capabilities=LOCAL)
    settings = CompletionSettings(debounce_ms=0, adaptive_debounce=False, speculate=speculate)
    desk.engine = Engine([backend], EngineSettings(completion=settings), traces=desk.traces, clock=desk.clock)
    return backend


def text(outcome: Outcome) -> str | None:
    return outcome.text if isinstance(outcome, Completion) else None


def texts(outcome: Outcome) -> list[str]:
    return [outcome.text, *(other.text for other in outcome.others)] if isinstance(outcome, Completion) else []


def edited(desk: Desk, marked: str) -> None:
    desk.engine.edited(URI, lambda: context(marked).document)


# Joined, and it turned out different ----------------------------------------------------------------------------------


async def test_a_request_that_was_joined_in_vain_is_asked_as_if_it_had_not_been() -> None:
    """Its record is new: another backend is asked when the first one fails, and no time before the request counts."""
    answer = asyncio.Event()
    desk = Desk(lambda _: [answer, "compute()"] if len(first.requests) == 1 else [BackendError(ErrorKind.QUOTA, "no")])
    first, second = desk.backend, ScriptedBackend("second", script=lambda _: ["() + 1"])
    settings = EngineSettings(completion=CompletionSettings(debounce_ms=0, speculate="never", adaptive_debounce=False))
    desk.engine = Engine([first, second], settings, traces=desk.traces, clock=desk.clock, observer=desk.notices)
    desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    newer = desk.begin("x = other⟦|⟧\n")
    await desk.clock.advance(1)
    answer.set()
    assert text(await newer) == "() + 1"
    assert desk.trace is not None
    assert (desk.trace.cache, desk.trace.backend, desk.trace.failures) == ("miss", "second", ["scripted:quota"])


async def test_an_edit_that_is_taken_back_at_once_does_not_join_what_it_has_ended() -> None:
    never = asyncio.Event()
    desk = Desk()
    backend = slow(desk, lambda _: ["compute", never] if len(backend.requests) == 1 else ["ompute()"])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "x = d⟦|⟧\n")
    edited(desk, "x = c⟦|⟧\n")
    assert text(await desk.ask("x = c⟦|⟧\n")) == "ompute()"
    assert reason(await older) in (Reason.STALE, Reason.SUPERSEDED)


async def test_what_was_ended_is_not_ended_again_while_it_closes_its_connections() -> None:
    never = asyncio.Event()
    desk = Desk()
    backend = slow(desk, lambda _: ["compute", never])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "y = ⟦|⟧\n")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    desk.engine.forget(URI)
    await desk.engine.aclose()
    assert backend.alive == 0
    await older


# The client's cancel --------------------------------------------------------------------------------------------------


async def test_each_cancel_gives_the_whole_time_for_a_newer_request() -> None:
    more = asyncio.Event()
    desk = Desk(["compute", more, "()"])
    task = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    for typed in ("c", "co"):
        edited(desk, f"x = {typed}⟦|⟧\n")
        task.cancel()
        await desk.clock.advance(_GRACE_S * 0.6)
        task = desk.begin(f"x = {typed}⟦|⟧\n")
        await desk.clock.settle()
    more.set()
    assert text(await task) == "mpute()"
    assert len(desk.backend.requests) == 1


# A cold service -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tells", [True, False])
async def test_a_deletion_does_not_make_a_service_load_its_model_again(tells: bool) -> None:
    """Nor does an edit that nobody told of before the request came, as in a notebook."""
    loaded = asyncio.Event()
    desk = Desk(lambda _: [loaded, "first()"] if len(desk.backend.requests) == 1 else ["second()"], capabilities=REMOTE)
    desk.begin("x = a⟦|⟧\n")
    await desk.clock.advance(_COLD_S)
    if tells:
        edited(desk, "x = ⟦|⟧\n")
    assert reason(await desk.ask("x = ⟦|⟧\n", deleted="a")) is Reason.DELETION
    await desk.clock.advance(1)
    assert desk.backend.closed == 0
    newer = desk.begin("y = ⟦|⟧\n")
    await desk.clock.advance(1)
    assert (desk.backend.closed, len(desk.backend.requests)) == (0, 1)
    loaded.set()
    assert text(await newer) == "second()"
    assert len(desk.backend.requests) == 2


async def test_asked_by_hand_it_is_asked_anew_at_once() -> None:
    loaded = asyncio.Event()
    desk = Desk(lambda _: [loaded, "first()"] if len(desk.backend.requests) == 1 else ["second()"], capabilities=REMOTE)
    desk.begin("x = a⟦|⟧\n")
    await desk.clock.advance(_COLD_S)
    assert text(await desk.ask("y = ⟦|⟧\n", trigger=Trigger.INVOKED)) == "second()"


# Several --------------------------------------------------------------------------------------------------------------


async def test_of_several_those_are_offered_that_begin_with_what_was_typed() -> None:
    script = [Delta("one()", index=0), Delta("two()", index=1), Delta("once()", index=2), Delta("", Finish.STOP)]
    desk = Desk(script, capabilities=SEVERAL)
    assert texts(await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=3)) == ["one()", "two()", "once()"]
    assert texts(await desk.ask("x = on⟦|⟧\n", trigger=Trigger.INVOKED, candidates=3)) == ["e()", "ce()"]
    assert len(desk.backend.requests) == 1


async def test_another_one_than_the_first_may_be_typed_too() -> None:
    script = [Delta("one()", index=0), Delta("two()\nz", index=1), Delta("", Finish.STOP)]
    desk = Desk(script, capabilities=SEVERAL, max_candidates=2, multiline="always")
    await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=2)
    assert text(await desk.ask("x = tw⟦|⟧\n")) == "o()\nz"
    assert text(await desk.ask("x = two()\n⟦|⟧\n")) == "z"
    assert text(await desk.ask("x = on⟦|⟧\n")) == "e()"
    assert len(desk.backend.requests) == 1
    await desk.ask("x = tr⟦|⟧\n")
    assert len(desk.backend.requests) == 2


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([Delta("", index=0), Delta("two()", index=1), Delta("", Finish.STOP)], ["two()"]),
        ([Delta("  ", index=0), Delta("two()", index=1), Delta("a", index=2), Delta("", Finish.STOP)], ["two()", "a"]),
        ([Delta("one()", index=0), Delta("one()", index=1), Delta("", Finish.STOP)], ["one()"]),
        (
            [Delta("one()", index=0), Delta("two()", index=7), Delta("three()", index=-1), Delta("", Finish.STOP)],
            ["one()"],
        ),
        ([Delta("one()\nz", index=0), Delta("two", index=1), CUT_OFF], ["one()"]),
        ([Delta("one()\nz", index=0), Delta("two", index=1), BackendError(ErrorKind.OVERLOADED, "late")], ["one()"]),
        ([Delta("one()", index=0), Delta("two()\nz", index=1), CUT_OFF], []),
        ([Delta("", Finish.STOP)], []),
    ],
)
async def test_what_is_good_of_several_is_shown(script: Script, expected: list[str]) -> None:
    desk = Desk(script, capabilities=SEVERAL, multiline="never")
    found = await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=3)
    assert texts(found) == expected
    if isinstance(found, Completion):
        assert len({found.id, *(other.id for other in found.others)}) == len(expected)


async def test_one_of_several_requests_may_fail() -> None:
    scripts: Iterator[Script] = iter([["one()"], [BackendError(ErrorKind.RATE_LIMITED, "slow")], ["three()"]])
    desk = Desk(lambda _: next(scripts))
    assert texts(await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED, candidates=3)) == ["one()", "three()"]


# Ahead ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False])
async def test_nothing_prepared_ahead_outlives_the_engine_or_its_document(closed: bool) -> None:
    never = asyncio.Event()
    desk = Desk()
    backend = slow(desk, lambda _: ["compute()"] if len(backend.requests) == 1 else [never], speculate="local")
    await desk.ask("x = ⟦|⟧\n")
    await desk.clock.settle()
    assert backend.alive == 1
    if closed:
        desk.engine.forget(URI)
    else:
        desk.begin("y = ⟦|⟧\n")  # takes its place
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await desk.engine.aclose()
    assert backend.alive == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("kind", [ErrorKind.CONTEXT_TOO_LONG, ErrorKind.BREAKER_OPEN, ErrorKind.UNREACHABLE])
async def test_a_failure_ahead_is_nobodys_and_the_next_request_is_asked(kind: ErrorKind) -> None:
    error = BackendError(kind, "no")
    desk = Desk(lambda _: [error] if 2 <= len(desk.backend.requests) < ends else ["b = 2"], speculate="local")
    ends = 4 if kind is ErrorKind.CONTEXT_TOO_LONG else 3
    await desk.ask("⟦|⟧\n")
    await desk.clock.settle()
    assert not any(warning for _, _, warning in desk.notices.seen)
    assert text(await desk.ask("b = 2\n⟦|⟧\n")) is not None


# Where suggestions are rejected ---------------------------------------------------------------------------------------


async def test_a_suggestion_that_is_typed_does_not_become_too_short() -> None:
    learned = Learned()
    for _ in range(200):
        learned.rejected("python")
    desk = Desk(["something_longer(b)"], learned=learned)
    await desk.ask("f(a, ⟦|⟧\n")
    assert text(await desk.ask("f(a, something_lon⟦|⟧\n")) == "ger(b)"
    assert len(desk.backend.requests) == 1


# What takes the place of text before the cursor -----------------------------------------------------------------------


async def test_typed_in_a_menu_it_takes_the_place_of_the_same_text() -> None:
    desk = Desk(["else:\n        pass"], multiline="always")
    marked = "if a:\n    b\n        ⟦|⟧\n"
    first = await desk.ask(marked)
    assert isinstance(first, Completion)
    assert (first.text, first.start) == ("else:\n        pass", len("if a:\n    b\n"))
    place = len("if a:\n    b\n        ")
    chosen = await desk.ask(marked, selected=Selected("else", place, place))
    assert isinstance(chosen, Completion)
    assert (chosen.text, chosen.start, chosen.end) == (first.text, first.start, first.end)


async def test_a_line_that_is_done_is_not_changed_any_more() -> None:
    answers = iter(["else:\n        pass", "pass"])
    desk = Desk(lambda _: [next(answers)], multiline="always")
    await desk.ask("if a:\n    b\n        ⟦|⟧\n")
    typed = "if a:\n    b\n        else:\n        "
    found = await desk.ask(f"{typed}⟦|⟧\n")
    assert isinstance(found, Completion)
    assert (found.text, found.start) == ("pass", len(typed))


async def test_the_wait_counts_from_receipt() -> None:
    desk = Desk(["a"], debounce_ms=120)
    received = desk.clock.now()
    await desk.clock.advance(0.1)
    desk.begin("x = ⟦|⟧\n", received=received)
    await desk.clock.advance(0.019)
    assert desk.backend.requests == []
    await desk.clock.advance(0.001)
    assert len(desk.backend.requests) == 1
    assert text(await desk.ask("y = ⟦|⟧\n", received=received)) == "a"  # passed long ago: no wait at all
