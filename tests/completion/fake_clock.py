"""A clock moved by hand: `Clock` of the engine without waiting."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count

# Passes of the event loop after which tasks woken by the clock have come to their next wait. Far more than any needs.
_PASSES = 50


class FakeClock:
    def __init__(self) -> None:
        self._now = 1000.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        await woken

    async def advance(self, seconds: float) -> None:
        """Let time pass; whoever sleeps is woken in order, and runs until it waits again."""
        end = self._now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end + 1e-9:
            self._now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._now = end

    async def settle(self) -> None:
        for _ in range(_PASSES):
            await asyncio.sleep(0)
