"""Only the latest request of each document lives on.

Must not know what a request does.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class SupersededError(Exception):
    """A newer request of the same document took this one's place."""


class Gate:
    """Keeps one live request per key. All of it runs on one event loop."""

    def __init__(self) -> None:
        self._latest: dict[str, Latest] = {}
        self._inside: set[Latest] = set()  # the latest ones and the superseded ones still on their way out

    def latest(self, key: str) -> Latest:
        """`async with gate.latest(key):` supersedes the holder of `key`; SupersededError ends it."""
        return Latest(self, key)

    @property
    def busy(self) -> bool:
        """Whether any request is at work."""
        return bool(self._inside)

    def supersede(self, key: str) -> None:
        """End the holder of `key`, if there is one."""
        holder = self._latest.pop(key, None)
        if holder is not None:
            holder.supersede()

    async def aclose(self) -> None:
        """End all holders and wait until they are out."""
        for key in tuple(self._latest):
            self.supersede(key)
        while self._inside:
            await next(iter(self._inside)).left.wait()

    def enter(self, key: str, scope: Latest) -> None:
        self.supersede(key)
        self._latest[key] = scope
        self._inside.add(scope)

    def leave(self, key: str, scope: Latest) -> None:
        if self._latest.get(key) is scope:
            del self._latest[key]
        self._inside.discard(scope)


class Latest:
    """The scope of one request. Works as `asyncio.timeout` does, with a newer request in place of the time.

    Superseding cancels the task. At the scope's exit exactly that cancellation is turned into SupersededError; if the
    task was cancelled by someone else too, that cancellation wins and goes on.
    """

    def __init__(self, gate: Gate, key: str) -> None:
        self.left = asyncio.Event()
        self._gate = gate
        self._key = key
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._superseded = False
        self._cancelled = False

    def supersede(self) -> None:
        self._superseded = True
        # A task that does this to itself is running: a cancellation would hit it after the scope. The exit will do.
        if self._task is not None and self._task is not asyncio.current_task():
            self._cancelled = True
            self._task.cancel()

    async def __aenter__(self) -> Latest:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        self._gate.enter(self._key, self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._gate.leave(self._key, self)
        self.left.set()
        if not self._superseded:
            return
        others = self._task.uncancel() > self._cancelling if self._cancelled else False
        if not others and (kind is None or issubclass(kind, asyncio.CancelledError)):
            raise SupersededError from error
