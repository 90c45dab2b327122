"""Several answers to one question: side by side in one stream, or one request each. Must not know prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeVar

from backends.base import BackendError
from completion.stopping import Stream

T = TypeVar("T")

# Once the first answer is there the others may take so long, seconds.
_OTHERS_S = 1.0


async def split(stream: Stream, count: int, read: Callable[[Stream, int], Coroutine[Any, Any, T]]) -> list[T]:
    """What `read` makes of each answer of a stream that holds `count` of them, by their index.

    The stream is closed when no answer is read on. Raises what the stream or the first reader does; what fails once
    the first answer is there is left out.
    """
    parts = [_Part() for _ in range(count)]
    readers = [asyncio.create_task(read(part.stream(), index)) for index, part in enumerate(parts)]
    pump = asyncio.create_task(_pump(stream, parts))
    try:
        while reading := {reader for reader in readers if not reader.done()}:
            await asyncio.wait({pump, *reading} if not pump.done() else reading, return_when=asyncio.FIRST_COMPLETED)
            if pump.done() and (error := pump.exception()) is not None:
                if not readers[0].done():
                    raise error
                break
        found = [readers[0].result()]
        for reader in readers[1:]:
            if reader.done():
                with suppress(BackendError):
                    found.append(reader.result())
        return found
    finally:
        await _end((pump, *readers))


async def beside(first: Awaitable[T], others: list[Coroutine[Any, Any, T]]) -> list[T]:
    """The first answer, and those of `others` that come in time and are no failures."""
    tasks = [asyncio.create_task(other) for other in others]
    found: list[T] = []
    try:
        found.append(await first)
        if tasks:
            await asyncio.wait(tasks, timeout=_OTHERS_S)
        for task in tasks:
            if task.done():
                with suppress(BackendError):
                    found.append(task.result())
        return found
    finally:
        await _end(tasks)


class _Part:
    def __init__(self) -> None:
        self.deltas: asyncio.Queue[Any] = asyncio.Queue()
        self.wanted = True

    async def stream(self) -> Stream:
        try:
            while (delta := await self.deltas.get()) is not None:
                yield delta
        finally:
            self.wanted = False


async def _pump(stream: Stream, parts: list[_Part]) -> None:
    async with aclosing(stream):
        async for delta in stream:
            if 0 <= delta.index < len(parts):
                parts[delta.index].deltas.put_nowait(replace(delta, finish=None))
            if delta.finish is not None:
                for part in parts:
                    part.deltas.put_nowait(replace(delta, text=""))
            if not any(part.wanted for part in parts):
                break
    for part in parts:
        part.deltas.put_nowait(None)


async def _end(tasks: Any) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
