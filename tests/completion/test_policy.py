"""When a question is asked at all: joined, kept from a cold service, prepared ahead, not for a deletion."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from backends.base import BackendRequest, Capabilities, Shape
from backends.scripted import Script
from completion.flight import _COLD_S, _GRACE_S
from completion.types import Completion, Outcome, Reason, Trigger
from tests.completion.desk import LOCAL, Desk, context, reason

REMOTE = Capabilities(frozenset({Shape.INFILL}), remote=True)
WARM = replace(LOCAL, warms=True)
URI = "file:///a.py"


def text(outcome: Outcome) -> str | None:
    return outcome.text if isinstance(outcome, Completion) else None


def edited(desk: Desk, marked: str) -> None:
    desk.engine.edited(URI, lambda: context(marked).document)


# Join -----------------------------------------------------------------------------------------------------------------


async def test_a_request_goes_on_while_what_it_writes_is_typed() -> None:
    more = asyncio.Event()
    desk = Desk(["compute", more, "(total)"])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "x = c⟦|⟧\n")
    newer = desk.begin("x = c⟦|⟧\n")
    assert reason(await older) is Reason.SUPERSEDED
    edited(desk, "x = co⟦|⟧\n")
    newest = desk.begin("x = co⟦|⟧\n")
    assert reason(await newer) is Reason.SUPERSEDED
    more.set()
    assert text(await newest) == "mpute(total)"
    assert len(desk.backend.requests) == 1
    assert desk.trace is not None
    assert desk.trace.cache == "joined"
    assert desk.backend.closed == 0


async def test_typing_before_any_text_came_is_joined_and_found_right_or_wrong_later() -> None:
    answer = asyncio.Event()
    desk = Desk(lambda _: [answer, "compute()"] if len(desk.backend.requests) == 1 else ["other()"])
    for _ in range(2):
        older = desk.begin("x = ⟦|⟧\n")
        await desk.clock.settle()
        newer = desk.begin("x = comp⟦|⟧\n")
        await older
        answer.set()
        assert text(await newer) == "ute()"
    assert len(desk.backend.requests) == 1

    desk = Desk(lambda _: [answer, "compute()"] if len(desk.backend.requests) == 1 else ["() + 1"])
    answer.clear()
    desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    newer = desk.begin("x = other⟦|⟧\n")
    await desk.clock.settle()
    answer.set()
    assert text(await newer) == "() + 1"
    assert len(desk.backend.requests) == 2


async def test_it_ends_at_the_moment_the_two_differ() -> None:
    never = asyncio.Event()
    desk = Desk(lambda _: ["compute", never] if len(desk.backend.requests) == 1 else ["y"])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "x = d⟦|⟧\n")  # no newer request yet
    assert reason(await older) is Reason.STALE
    await desk.clock.settle()
    assert desk.backend.closed == 1


@pytest.mark.parametrize("marked", ["y = ⟦|⟧\n", "x = c⟦|⟧)\n", "x =⟦|⟧\n", "x = ⟦|⟧\nz\n", "import a\nx = c⟦|⟧\n"])
async def test_a_change_elsewhere_ends_it(marked: str) -> None:
    never = asyncio.Event()
    desk = Desk(lambda _: ["compute", never] if len(desk.backend.requests) == 1 else ["y"])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    newer = desk.begin(marked)
    await older
    await newer
    assert desk.backend.closed == 1
    assert len(desk.backend.requests) == 2


async def test_line_ends_of_the_document_do_not_matter() -> None:
    more = asyncio.Event()
    desk = Desk(["a,\n    b", more, ")"])
    older = desk.begin("x = f(\r\n    ⟦|⟧\r\n")
    await desk.clock.settle()
    newer = desk.begin("x = f(\r\n    a,\r\n    ⟦|⟧\r\n")
    await older
    more.set()
    assert text(await newer) == "b)"
    assert len(desk.backend.requests) == 1


async def test_what_was_joined_is_streamed_without_what_is_typed() -> None:
    more = asyncio.Event()
    desk = Desk(["compute", more, "(total)"])
    desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    pieces: list[str] = []
    newer = desk.begin("x = com⟦|⟧\n", on_text=pieces.append)
    await desk.clock.settle()
    more.set()
    await newer
    assert pieces == ["pute", "(total)"]


async def test_joining_can_be_switched_off() -> None:
    never = asyncio.Event()
    desk = Desk(lambda _: ["compute", never] if len(desk.backend.requests) == 1 else ["ute"], join=False)
    desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    await desk.begin("x = comp⟦|⟧\n")
    assert len(desk.backend.requests) == 2
    assert desk.backend.closed == 1


# The client's cancel --------------------------------------------------------------------------------------------------


async def test_a_cancel_without_a_newer_request_ends_it_at_once() -> None:
    never = asyncio.Event()
    desk = Desk(["compute", never])
    task = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    task.cancel()
    await desk.clock.settle()
    assert desk.backend.closed == 1


async def test_an_editor_that_cancels_at_every_key_is_joined_all_the_same() -> None:
    more = asyncio.Event()
    desk = Desk(["compute", more, "()"])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "x = c⟦|⟧\n")
    older.cancel()
    await desk.clock.advance(_GRACE_S / 2)
    newer = desk.begin("x = c⟦|⟧\n")
    await desk.clock.advance(_GRACE_S * 2)
    more.set()
    assert text(await newer) == "ompute()"
    assert len(desk.backend.requests) == 1


async def test_it_does_not_go_on_for_long_without_a_newer_request() -> None:
    never = asyncio.Event()
    desk = Desk(["compute", never])
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    edited(desk, "x = c⟦|⟧\n")
    older.cancel()
    await desk.clock.advance(_GRACE_S)
    assert desk.backend.closed == 1


# A cold service -------------------------------------------------------------------------------------------------------


async def test_a_service_that_loads_its_model_is_not_made_to_begin_again_at_every_key() -> None:
    loaded = asyncio.Event()

    def script(request: BackendRequest) -> Script:
        return [loaded, "first()"] if len(desk.backend.requests) == 1 else ["second()"]

    desk = Desk(script, capabilities=REMOTE)
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.advance(_COLD_S)
    for number in range(5):
        edited(desk, f"{number} + ⟦|⟧\n")
        older.cancel()
        older = desk.begin(f"{number} + ⟦|⟧\n")
        await desk.clock.advance(1)
    assert len(desk.backend.requests) == 1
    assert desk.backend.closed == 0
    loaded.set()
    assert text(await older) == "second()"
    assert len(desk.backend.requests) == 2


async def test_once_it_has_loaded_it_writes_nothing_that_nobody_waits_for() -> None:
    loaded, never = asyncio.Event(), asyncio.Event()
    desk = Desk([loaded, "first()", never], capabilities=REMOTE)
    older = desk.begin("x = ⟦|⟧\n")
    await desk.clock.advance(_COLD_S)
    edited(desk, "1 + ⟦|⟧\n")
    older.cancel()
    await desk.clock.advance(1)
    assert desk.backend.closed == 0
    loaded.set()
    await desk.clock.settle()
    assert desk.backend.closed == 1


async def test_a_service_that_is_only_slow_is_cancelled() -> None:
    never = asyncio.Event()
    desk = Desk(lambda _: [never] if len(desk.backend.requests) == 1 else ["y"], capabilities=REMOTE)
    desk.begin("x = ⟦|⟧\n")
    await desk.clock.advance(_COLD_S / 2)
    await desk.begin("1 + ⟦|⟧\n")
    assert desk.backend.closed == 1


# Ahead ----------------------------------------------------------------------------------------------------------------


async def test_the_next_suggestion_is_there_when_one_is_accepted() -> None:
    desk = Desk(lambda _: ["a = 1"] if len(desk.backend.requests) == 1 else ["\nb = 2"], speculate="local")
    assert text(await desk.ask("⟦|⟧")) == "a = 1"
    await desk.clock.settle()
    assert len(desk.backend.requests) == 2
    assert text(await desk.ask("a = 1⟦|⟧")) == "\nb = 2"
    assert desk.trace is not None
    assert desk.trace.cache == "hit"


@pytest.mark.parametrize(
    ("capabilities", "speculate", "requests"),
    [(LOCAL, "never", 1), (LOCAL, "local", 2), (REMOTE, "local", 1), (REMOTE, "always", 2)],
)
async def test_only_where_it_costs_nothing_unless_told_to(
    capabilities: Capabilities, speculate: str, requests: int
) -> None:
    desk = Desk(["a"], capabilities=capabilities, speculate=speculate)
    await desk.ask("x = ⟦|⟧\n")
    await desk.clock.settle()
    assert len(desk.backend.requests) == requests
    assert desk.traces.counts["ahead"] == requests - 1


async def test_only_in_an_editor() -> None:
    desk = Desk(["a"], speculate="always")
    await desk.ask("x = ⟦|⟧\n", trigger=Trigger.INVOKED)
    await desk.clock.settle()
    assert len(desk.backend.requests) == 1


async def test_typing_through_leaves_it_alone_and_another_question_ends_it() -> None:
    never = asyncio.Event()
    desk = Desk(lambda _: ["compute()"] if len(desk.backend.requests) in (1, 3) else [never], speculate="local")
    await desk.ask("x = ⟦|⟧\n")
    await desk.clock.settle()
    await desk.ask("x = comp⟦|⟧\n")
    await desk.clock.settle()
    assert desk.backend.closed == 0
    await desk.ask("y = ⟦|⟧\n")
    assert desk.backend.closed == 1
    await desk.engine.aclose()
    assert desk.backend.closed + desk.backend.finished == len(desk.backend.requests)


# Waiting --------------------------------------------------------------------------------------------------------------


async def test_a_deletion_asks_for_nothing_but_what_is_known() -> None:
    desk = Desk(["compute()"])
    await desk.ask("x = ⟦|⟧\n")
    assert text(await desk.ask("x = co⟦|⟧\n", deleted="m")) == "mpute()"
    assert reason(await desk.ask("x =⟦|⟧\n", deleted=" ")) is Reason.DELETION
    assert len(desk.backend.requests) == 1
    await desk.ask("x =⟦|⟧\n", deleted=" ", trigger=Trigger.INVOKED)
    assert len(desk.backend.requests) == 2


async def test_a_model_on_this_machine_is_asked_at_once_when_it_has_the_prompt() -> None:
    desk = Desk(["a"], capabilities=WARM, debounce_ms=120, adaptive_debounce=True)
    first = desk.begin("x = ⟦|⟧\n")
    await desk.clock.settle()
    assert not desk.backend.requests
    await desk.clock.advance(0.2)
    await first
    second = desk.begin("x = 1 + ⟦|⟧\n")
    await desk.clock.settle()
    assert second.done()
    other = desk.begin("x = ⟦|⟧\n", uri="file:///b.py")
    await desk.clock.settle()
    assert not other.done()
    other.cancel()


async def test_typing_through_five_lines_with_two_mistakes_is_one_request() -> None:
    answer = "a = 1\nb = 2\nfor c in d:\n    e(c)\nf = 3"
    desk = Desk([answer], debounce_ms=120, adaptive_debounce=True)
    first = desk.begin("⟦|⟧")
    await desk.clock.advance(1)
    assert text(await first) == answer
    typed, deleted = "", ""
    mistakes = {8: "x", 20: "q"}
    for number, key in enumerate(answer[:-1]):
        keys = [key] if number not in mistakes else [mistakes[number], "", key]
        for each in keys:
            typed, deleted = (typed + each, "") if each else (typed[:-1], typed[-1])
            task = desk.begin(f"{typed}⟦|⟧", deleted=deleted)
            await desk.clock.advance(0.04)
            if not answer.startswith(typed):
                continue
            assert text(await task) == answer[len(typed) :]
    assert len(desk.backend.requests) == 1


async def test_a_hundred_keys_begin_few_requests_and_never_two_at_once() -> None:
    """Keys every 40 ms, a service that takes 300 ms: what counts is the time from the last key."""
    desk: Desk

    def script(request: BackendRequest) -> Script:
        assert len(desk.backend.requests) - desk.backend.finished - desk.backend.closed == 1  # this one
        late = asyncio.Event()
        waits.add(asyncio.create_task(ring(late)))
        return [late, "answer"]

    async def ring(late: asyncio.Event) -> None:
        await desk.clock.sleep(0.3)
        late.set()

    waits: set[asyncio.Task[None]] = set()
    desk = Desk(script, capabilities=REMOTE, debounce_ms=120, adaptive_debounce=True)
    text_typed = "x = "
    task = None
    for number in range(100):
        text_typed += chr(ord("a") + number % 26)
        edited(desk, f"{text_typed}⟦|⟧\n")
        if task is not None:
            task.cancel()
        task = desk.begin(f"{text_typed}⟦|⟧\n")
        await desk.clock.advance(0.04)
    assert task is not None
    await desk.clock.advance(0.12 + 0.32 - 0.04)
    assert task.done()
    assert text(task.result()) == "answer"
    assert len(desk.backend.requests) <= 6
