"""Time as the engine sees it, so that tests can run it by hand. Must not know what is waited for."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    __slots__ = ()

    def now(self) -> float:
        return time.perf_counter()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
