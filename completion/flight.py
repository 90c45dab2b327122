"""A question on its way to the backends, and who waits for it. Must not know how backends are asked.

It is not bound to the request that began it: while what the user types agrees with what the model writes, it goes on
and answers a newer request. It ends at the moment the two differ, or when nobody wants it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from completion import auto_closed
from completion.clock import Clock
from completion.plan import Plan
from completion.route import Answer, OnText, begun
from completion.trace import RequestTrace
from completion.types import CompletionContext, DocumentSnapshot

# After the client's cancel a question whose text was typed on goes on for so long, seconds: an editor cancels the old
# request and sends the new one at the same key. Well within the 0.1 s that a cancel may take to reach the service.
_GRACE_S = 0.06

# A remote service that has sent nothing for so long, seconds, is loading its model: to ask anew at every key would make
# it begin again each time.
_COLD_S = 2.0

# Code points around the cursor by which it is seen that a document differs by what was typed there alone.
_BEFORE = 1000
_AFTER = 256

Work = Callable[[OnText], Coroutine[Any, Any, Answer]]


class DivergedError(Exception):
    """What the user typed is not what the model writes."""


class StaleError(Exception):
    """The document has changed so that no answer can fit."""


class Flight:
    """`work` asks, and gives each piece of text to the function it gets. Runs from the beginning on."""

    def __init__(
        self, context: CompletionContext, plan: Plan, trace: RequestTrace, clock: Clock, *, remote: bool, work: Work
    ) -> None:
        self.context, self.plan, self.trace = context, plan, trace
        self._clock, self._remote = clock, remote
        self._began = clock.now()
        self._text = ""
        self._typed = ""  # since it began, as far as is known
        self._moved = False  # the document was edited
        self._stale = False
        self._waiters: set[asyncio.Future[None]] = set()
        self._answer: Answer | None = None
        self._hear: tuple[OnText, int] | None = None
        self._grace: asyncio.Task[None] | None = None
        self._cancelled = False
        self.heard = asyncio.Event()  # text came, or the end
        self.task = asyncio.create_task(self._run(work))
        self.task.add_done_callback(self._done)

    @property
    def over(self) -> bool:
        """It has ended, or is about to."""
        return self._cancelled or self.task.done()

    @property
    def cold(self) -> bool:
        """It may be what makes a service load its model."""
        waited = self._clock.now() - self._began
        return self._remote and not self.over and not self._text and waited >= _COLD_S

    def typed(self, context: CompletionContext) -> tuple[str, int] | None:
        """What was typed since it began, if that is all `context` differs by and agrees with the text so far.

        The number is that of characters behind the cursor with which the editor has closed what was opened.
        """
        if context.selected is not None or self.context.selected is not None or self.over:
            return None
        if context.document.language_id != self.context.document.language_id:
            return None
        inserted = _inserted(self.context, context.document)
        length = context.offset - self.context.offset
        if inserted is None or length < 0:
            return None
        typed, closers = inserted[:length], inserted[length:]
        if auto_closed.behind(typed, closers) < len(closers) or context.offset > self.context.offset + len(inserted):
            return None
        typed = typed.replace("\r\n", "\n").replace("\r", "\n")
        return (typed, len(closers)) if self._agrees(typed) else None

    def edited(self, document: DocumentSnapshot) -> None:
        """The document is now as told; ends the work if no answer can fit any more."""
        self._moved = True
        if self.context.selected is not None or self.over:
            return
        inserted = _inserted(self.context, document)
        typed = None if inserted is None else self._read(inserted)
        if typed is not None:
            self._typed = typed
        if typed is None and not self.cold:
            self._stale = True
            self.cancel()

    async def wait(self, on_text: OnText, typed: str = "") -> Answer:
        """The answer, for a request that came when `typed` had been typed.

        Raises BackendError; DivergedError and StaleError as soon as it is known that the answer is of no use.
        """
        self._typed, self._moved = typed, False
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None
        self._hear = (on_text, 0)
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            self._tell()
            if not self.task.done():
                await waiter
            if self._answer is not None:
                return self._answer
            if self.task.cancelled():
                raise StaleError if self._stale else DivergedError
            return self.task.result()
        finally:
            self._waiters.discard(waiter)
            if not self._waiters:
                self._leave()

    def cancel(self) -> None:
        """Once: another cancellation would break off how the first one closes connections."""
        if not self._cancelled:
            self._cancelled = True
            self.task.cancel()

    async def _run(self, work: Work) -> Answer:
        self._answer = answer = await work(self._on_text)
        self._wake()  # a turn of the event loop earlier than the task's end is known
        return answer

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _leave(self) -> None:
        """Nobody waits any more."""
        if self.over or (self._moved and self.cold):
            return
        if self._moved and not self._stale:
            self._grace = asyncio.create_task(self._end_soon())
        else:
            self.cancel()

    async def _end_soon(self) -> None:
        await self._clock.sleep(_GRACE_S)
        self._grace = None
        if not self.cold:
            self.cancel()

    def _on_text(self, text: str) -> None:
        self._text += text
        self.heard.set()
        unwanted = not self._waiters and self._grace is None  # it was kept because the service was cold
        if self._agrees(self._typed) and not unwanted:
            self._tell()
        else:
            self.cancel()

    def _read(self, inserted: str) -> str | None:
        """What was typed of what was inserted, the end of which the editor may have put there; None: it disagrees."""
        inserted = inserted.replace("\r\n", "\n").replace("\r", "\n")
        for end in range(len(inserted), max(0, len(inserted) - 5), -1):
            typed, closers = inserted[:end], inserted[end:]
            if auto_closed.behind(typed, closers) == len(closers) and self._agrees(typed):
                return typed
        return None if inserted else ""

    def _agrees(self, typed: str) -> bool:
        if not typed or not self._text:
            return True
        text = begun(self._text, self.plan)
        return text.startswith(typed) or typed.startswith(text)

    def _tell(self) -> None:
        """Give on what was not yet given to who waits now, without what stands before the cursor already."""
        if self._hear is not None:
            on_text, told = self._hear
            new = self._text[max(told, len(self._typed)) :]
            if new:
                self._hear = on_text, len(self._text)
                on_text(new)

    def _done(self, task: asyncio.Task[Answer]) -> None:
        self.heard.set()
        self._wake()
        if self._grace is not None:
            self._grace.cancel()
        if not task.cancelled():
            task.exception()  # whoever waits hears of it; perhaps nobody does


def _inserted(before: CompletionContext, now: DocumentSnapshot) -> str | None:
    """What was put in at the cursor of `before` since; None if the document differs otherwise."""
    offset, old, new = before.offset, before.document.text, now.text
    more = len(new) - len(old)
    if more < 0 or now.uri != before.document.uri:
        return None
    if old is new:
        return ""
    if new.slice(offset - _BEFORE, offset) != old.slice(offset - _BEFORE, offset):
        return None
    if new.slice(offset + more, offset + more + _AFTER) != old.slice(offset, offset + _AFTER):
        return None
    return new.slice(offset, offset + more)
