"""How much is taken on at a time: requests and bytes. Must not know what is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from lsp_server.gateway.refusal import Cause, Refusal

# Read and thrown away of what is too large, bytes: a connection closed on a client that still sends loses the answer.
DISCARDED = 16 * 1024 * 1024
BODY_S = 30.0  # within which a body must have come, seconds
RETRY_AFTER_S = 1.0  # what those who find no place are told to wait


class Turnstile:
    """Lets `running` requests through at a time and has `waiting` wait, in the order they came."""

    def __init__(self, running: int, waiting: int) -> None:
        self._places = running + waiting
        self._turn = asyncio.Semaphore(running)
        self.inside = 0  # running and waiting

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Raises Refusal(BUSY) at once if there is no place."""
        if self.inside >= self._places:
            raise Refusal(Cause.BUSY, "Too many requests at the same time.", retry_after_s=RETRY_AFTER_S)
        self.inside += 1
        try:
            async with self._turn:
                yield
        finally:
            self.inside -= 1


async def read_body(request: Request, limit: int) -> bytes:
    """A body of at most `limit` bytes; of a larger one nothing is kept. Raises Refusal, and ClientDisconnect."""
    too_large = Refusal(Cause.TOO_LARGE, f"The request is larger than {limit} bytes.")
    declared = request.headers.get("content-length", "")
    size = int(declared[:20]) if declared.isdigit() else 0
    if size > limit + DISCARDED or (size > limit and "expect" in request.headers):  # it waits to be told to go on
        raise too_large
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= limit:
                    body += chunk
                elif size > limit + DISCARDED:
                    break
    except TimeoutError:
        raise Refusal(Cause.SLOW, f"The request did not come within {BODY_S:g} s.") from None
    if size > limit:
        raise too_large
    return bytes(body)
