"""Evaluates a likely prompt before anybody asks, on a machine that has nothing else to do. Must not know prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from backends.base import BackendError


class Warmer:
    """One evaluation at a time: the newest is the likeliest, and a request ends it at once."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = (
            set()
        )  # this one, and those that have been stopped and are on their way out

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        self.stop()
        self._task = asyncio.create_task(_quietly(work))
        self._tasks.add(self._task)
        self._task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def aclose(self) -> None:
        self.stop()
        if self._tasks:
            await asyncio.wait(set(self._tasks))


async def _quietly(work: Callable[[], Awaitable[None]]) -> None:
    """`work` is called here: a request may come before this has begun, and would leave a coroutine nobody awaits."""
    with suppress(BackendError):  # the first request says the same
        await work()
