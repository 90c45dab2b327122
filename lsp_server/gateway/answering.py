"""One answer on its way from the backend to the client, whole or streamed. Must not know any API's form."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from backends.base import BackendError, Delta, Finish
from completion.tokens import estimate
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import refusal_of


@dataclass(frozen=True, slots=True)
class Counts:
    """What is told at the end. Tokens are guessed from the text's length where the backend does not count them."""

    finish: Finish
    prompt_tokens: int
    generated_tokens: int
    seconds: float


class Answering:
    """Runs in a task of its own: however the response is ended, backends see plain cancellation, and that once."""

    def __init__(self, question: Question, deltas: AsyncGenerator[Delta, None]) -> None:
        self._question = question
        self._begun_at = time.perf_counter()
        self._queue: asyncio.Queue[Delta | None] = asyncio.Queue()  # as long as the answer at most
        self._begun = asyncio.Event()
        self._written: list[str] = []
        self._task = asyncio.create_task(self._run(deltas))

    async def _run(self, deltas: AsyncGenerator[Delta, None]) -> None:
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    self._queue.put_nowait(delta)
                    self._begun.set()
        finally:
            self._queue.put_nowait(None)
            self._begun.set()

    async def begun(self) -> None:
        """Wait for the first text or the end. Raises Refusal if it came to nothing."""
        await self._begun.wait()
        await asyncio.sleep(0)  # the task may be about to end
        if self._task.done():
            self._raise()

    def _raise(self) -> None:
        if self._task.cancelled():
            return
        error = self._task.exception()
        if isinstance(error, BackendError):
            raise refusal_of(error) from None
        if error is not None:
            raise error

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """Raises Refusal."""
        while (delta := await self._queue.get()) is not None:
            self._written.append(delta.text)
            yield delta
        await asyncio.wait({self._task})
        self._raise()

    async def whole(self) -> tuple[str, Counts]:
        """Raises Refusal."""
        last = Delta("", Finish.STOP)
        async with aclosing(self.deltas()) as deltas:
            async for delta in deltas:
                last = delta
        return "".join(self._written), self.counts(last)

    def counts(self, last: Delta) -> Counts:
        usage = last.usage
        prompt = usage.prompt_tokens if usage else None
        generated = usage.generated_tokens if usage else None
        asked = (self._question.prefix, self._question.suffix or "", *(file.text for file in self._question.files))
        return Counts(
            last.finish or Finish.STOP,
            sum(map(estimate, asked)) if prompt is None else prompt,
            estimate("".join(self._written)) if generated is None else generated,
            time.perf_counter() - self._begun_at,
        )

    async def stop(self) -> None:
        """Cancel what still runs, and wait until backends have closed what they had open."""
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # told, or nobody is there to hear it
