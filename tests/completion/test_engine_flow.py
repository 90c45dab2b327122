"""The engine over several requests: superseding, cancelling, waiting, reuse, trace."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter

import pytest

from backends.base import (
    Delta,
    Finish,
    RawPrompt,
    Usage,
)
from completion.settings import EngineSettings
from completion.types import (
    Completion,
    Reason,
    Trigger,
)
from tests.completion.desk import RAW, Desk, other, reason


async def test_fifty_keystrokes() -> None:
    desk = Desk(["answer"], debounce_ms=120)
    text = "".join(chr(ord("a") + n % 26) for n in range(50))
    tasks = []
    for n in range(50):
        tasks.append(desk.begin(f"x = {text[: n + 1]}⟦|⟧\n"))
        await desk.clock.advance(0.030)
    await desk.clock.advance(1)
    outcomes = Counter([reason(await task) for task in tasks])
    assert outcomes == {Reason.SUPERSEDED: 49, None: 1}
    assert isinstance(await tasks[-1], Completion)
    assert len(desk.backend.requests) == 1
    assert desk.traces.counts["shown"] == 1
    assert desk.traces.counts["superseded"] == 49
    assert len(desk.lines) == 50


async def test_a_newer_request_closes_the_stream_of_the_older_one() -> None:
    never = asyncio.Event()
    desk = Desk(lambda request: ["a", never] if len(desk.backend.requests) == 1 else ["b"])
    older = desk.begin("x⟦|⟧")
    await desk.clock.settle()
    assert len(desk.backend.requests) == 1
    elsewhere = desk.begin("x⟦|⟧", uri="file:///b.py")
    newer = desk.begin("x ⟦|⟧")
    assert reason(await older) is Reason.SUPERSEDED
    assert desk.backend.closed == 1
    assert isinstance(await newer, Completion)
    assert isinstance(await elsewhere, Completion)


async def test_the_clients_cancel_leaves_the_engine_and_closes_the_stream() -> None:
    never = asyncio.Event()
    desk = Desk(["a", never])
    task = desk.begin("x⟦|⟧")
    await desk.clock.settle()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.backend.closed == 1


async def test_closing_a_document_or_the_engine_ends_what_is_pending() -> None:
    never = asyncio.Event()
    desk = Desk([never])
    first, second = desk.begin("⟦|⟧"), desk.begin("⟦|⟧", uri="file:///b.py")
    await desk.clock.settle()
    desk.engine.forget("file:///a.py")
    assert reason(await first) is Reason.SUPERSEDED
    assert not second.done()
    await desk.engine.aclose()
    assert reason(await second) is Reason.SUPERSEDED
    assert desk.backend.closed == 2


async def test_invoked_requests_do_not_wait() -> None:
    desk = Desk(debounce_ms=500)
    assert isinstance(await desk.ask("⟦|⟧", trigger=Trigger.INVOKED), Completion)
    automatic = desk.begin("y⟦|⟧")
    await desk.clock.advance(0.499)
    assert not automatic.done()
    await desk.clock.advance(0.001)
    assert isinstance(await automatic, Completion)


async def test_the_wait_counts_from_the_moment_the_request_came_in() -> None:
    desk = Desk(debounce_ms=500)
    received = desk.clock.now()
    await desk.clock.advance(0.400)
    task = desk.begin("y⟦|⟧", received=received)
    await desk.clock.advance(0.099)
    assert not task.done()
    await desk.clock.advance(0.001)
    assert isinstance(await task, Completion)


async def test_what_is_typed_as_suggested_needs_no_request_and_no_wait() -> None:
    desk = Desk(["first(a)\n", "    second(b)\n"], debounce_ms=0)
    await desk.ask("def f():\n    ⟦|⟧\n")
    desk.engine._settings = EngineSettings()  # from here on a wait would hang: the clock stands still
    typed = "first(a)\n    second(b)"
    for n in (3, 1, *range(8, 15), len(typed) - 1):
        outcome = await desk.ask(f"def f():\n    {typed[:n]}⟦|⟧\n")
        assert isinstance(outcome, Completion)
        assert outcome.text == typed[n:]
        assert desk.trace is not None
        assert desk.trace.cache == "typed-through"
    await desk.ask("def f():\n    ⟦|⟧\n")
    assert desk.trace is not None
    assert desk.trace.cache == "hit"
    assert len(desk.backend.requests) == 1


async def test_typing_does_not_change_what_the_filters_said() -> None:
    desk = Desk(["g(a))"])
    first = await desk.ask("x = f(⟦|⟧)\n")
    assert isinstance(first, Completion)
    assert first.text == "g(a)"
    for n in range(1, 4):
        outcome = await desk.ask(f"x = f({first.text[:n]}⟦|⟧)\n")
        assert isinstance(outcome, Completion)
        assert outcome.text == first.text[n:]
    assert len(desk.backend.requests) == 1
    await desk.ask("x = f(g(a)⟦|⟧)\n")  # the answer has one bracket more, but that is never shown
    assert len(desk.backend.requests) == 2


async def test_what_is_compared_with_the_typed_text_is_what_was_shown() -> None:
    desk = Desk([" 1 + 2"])
    first = await desk.ask("x = ⟦|⟧\n")
    assert isinstance(first, Completion)
    assert first.text == "1 + 2"
    outcome = await desk.ask("x = 1⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == " + 2"
    assert len(desk.backend.requests) == 1


async def test_typed_otherwise_or_to_the_end_is_asked_anew() -> None:
    desk = Desk(["first(a)\n"])
    for marked in ("f = ⟦|⟧\n", "f = fis⟦|⟧\n", "f = first(a)⟦|⟧\n", "g = ⟦|⟧\n"):
        await desk.ask(marked)
    assert len(desk.backend.requests) == 4
    desk.engine.clear_cache()
    await desk.ask("f = ⟦|⟧\n")
    assert len(desk.backend.requests) == 5


async def test_the_stream_is_closed_at_the_first_stop() -> None:
    never = asyncio.Event()
    desk = Desk(["a, b", "\n", never])
    assert isinstance(await desk.ask("f(⟦|⟧ + c)"), Completion)
    assert desk.backend.closed == 1
    assert isinstance(await desk.ask("f(⟦|⟧ + c)"), Completion)  # and what was stopped early is kept
    assert len(desk.backend.requests) == 1


async def test_the_trace_of_one_request() -> None:
    go = asyncio.Event()
    desk = Desk([go, "a", Delta("", Finish.STOP, Usage(9, 8, 1))], debounce_ms=100)
    task = desk.begin("secret_name = ⟦|⟧")
    await desk.clock.advance(0.150)
    go.set()
    await task
    (line,) = desk.lines
    assert line.endswith("\n")
    record = json.loads(line)
    assert record == {
        "id": "1",
        "uri_hash": record["uri_hash"],
        "reason": "shown",
        "detail": None,
        "cache": "miss",
        "backend": "scripted",
        "filters": [],
        "saved_tokens": None,
        "failures": [],
        "shape": "infill",
        "family": "unknown",
        "debounced": 100.0,
        "dispatched": 100.0,
        "first_delta": 150.0,
        "last_delta": 150.0,
        "answered": 150.0,
        "prompt_tokens": 9,
        "reused_tokens": 8,
        "generated_tokens": 1,
    }
    assert "a.py" not in line


async def test_the_trace_holds_text_only_when_told_to() -> None:
    desk = Desk(["answer"], text=True)
    await desk.ask("secret_name = ⟦|⟧")
    record = json.loads(desk.lines[0])
    assert "secret_name" in record["prompt"]
    assert record["answer"] == "answer"


async def test_the_prompt_begins_the_same_from_key_to_key() -> None:
    desk = Desk(["a = 1"], capabilities=RAW)
    others = tuple(other(f"o{n}.py", f"value_{n} = {n}\n" * 40) for n in range(20))
    above = "".join(f"line_{n} = {n}\n" for n in range(2000))
    typed = "name = call(argument)\n" * 9
    for n in range(len(typed)):
        await desk.ask(f"{above}{typed[:n]}⟦|⟧", others=others, trigger=Trigger.INVOKED)
    texts = [request.prompt.text for request in desk.backend.requests if isinstance(request.prompt, RawPrompt)]
    assert len(texts) > 100
    assert sum(not new.startswith(old) for old, new in itertools.pairwise(texts)) <= 1
