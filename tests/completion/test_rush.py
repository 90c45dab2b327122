"""Fast typing with a remote service that takes its time, by a clock moved by hand.

`midfill bench typing --only rush` is the same in real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from backends.base import BackendRequest, Capabilities, InfillPrompt, Shape
from backends.scripted import Script
from completion.trace import RequestTrace
from completion.types import Completion, Outcome
from tests.completion.desk import Desk, context

KEYS, INTERVAL_S, LATENCY_S = 100, 0.040, 0.300
DEBOUNCE_MS, MORE_MS = 120, 320.0
REMOTE = Capabilities(frozenset({Shape.INFILL}), remote=True)
TEXT = "total = sum(item.price * item.quantity for item in items if item.price and item.quantity and not item.gone)"


class Rush:
    """Types, one key after the other; every key asks, and the older request is cancelled, as editors do it."""

    def __init__(self, *, right: bool) -> None:
        self._right = right
        self._timers: list[asyncio.Task[None]] = []
        self.desk = Desk(self._answer, capabilities=REMOTE, debounce_ms=DEBOUNCE_MS)
        self.most_alive = 0

    def _answer(self, request: BackendRequest) -> Script:
        prompt = request.prompt
        assert isinstance(prompt, InfillPrompt)
        due = asyncio.Event()

        async def wait() -> None:
            await self.desk.clock.sleep(LATENCY_S)
            due.set()

        self._timers.append(asyncio.create_task(wait()))
        typed = prompt.prefix.rpartition("\n")[2]
        return [due, TEXT[len(typed) :] if self._right else "wrong()"]

    async def press(self, count: int) -> tuple[Outcome, RequestTrace]:
        """What the last key led to."""
        desk, older = self.desk, None
        for number in range(1, count + 1):
            trace = desk.traces.begin(str(number), "file:///a.py")
            asked = context(f"{TEXT[:number]}⟦|⟧\n")
            task = asyncio.create_task(self._ask(trace, desk.engine.complete(asked, trace)))
            await desk.clock.settle()
            if older is not None:
                older.cancel()
            older = task
            await self._pass(INTERVAL_S if number < count else 5.0)
        assert older is not None
        outcome = await older
        await asyncio.gather(*self._timers)
        return outcome, trace

    async def _ask(self, trace: RequestTrace, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        outcome = await work
        self.desk.traces.finish(trace, outcome)
        return outcome

    async def _pass(self, seconds: float) -> None:
        backend = self.desk.backend
        for _ in range(round(seconds / 0.010)):
            await self.desk.clock.advance(0.010)
            self.most_alive = max(self.most_alive, len(backend.requests) - backend.finished - backend.closed)


@pytest.mark.parametrize("right", [True, False])
async def test_a_hundred_keys_in_four_seconds(right: bool) -> None:
    rush = Rush(right=right)
    outcome, trace = await rush.press(KEYS)
    assert isinstance(outcome, Completion)
    assert 1 <= len(rush.desk.backend.requests) <= 6
    assert rush.most_alive == 1
    assert trace.answered is not None
    assert trace.answered <= DEBOUNCE_MS + MORE_MS
