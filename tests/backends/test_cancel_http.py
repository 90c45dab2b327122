"""Requests cancelled at any moment: nothing is left behind, nobody else is disturbed."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Any

import pytest

from backends.base import BackendRequest
from tests.services.ffm import FfmService
from tests.services.http2 import CA, h2_service
from tests.services.raw import events

FINAL = '{"generated_text": "x", "finish_reason": "stop"}'


@pytest.fixture(autouse=True)
def _no_proxies_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


async def cancelled_after(steps: int, work: Any) -> None:
    """Begin `work`, cancel it when the loop has gone round so many times, and wait for its end."""
    task = asyncio.create_task(work)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_connections_whose_request_was_cancelled_do_not_stay_in_use(
    make_ffm: Any, question: BackendRequest, collect: Any, ffm: FfmService
) -> None:
    backend = make_ffm(ffm.url, timeout_s=5)
    await backend.prepare()
    for _ in range(25):  # more than there may be connections, if one were left behind each time
        for steps in range(30):
            await cancelled_after(steps, collect(backend, question))
    assert "".join(delta.text for delta in await collect(backend, question)) == "return a + b"


async def test_whoever_shares_a_connection_of_http_2_does_not_notice(
    make_ffm: Any, question: BackendRequest, collect: Any
) -> None:
    async with h2_service(events(FINAL)) as service:
        for steps in range(0, 240, 3):  # from before the handshake to after the answer
            backend = make_ffm(service.url, ca_file=str(CA), timeout_s=5)
            await backend.prepare()
            other = asyncio.create_task(collect(backend, question))
            await cancelled_after(steps, collect(backend, question))
            assert [delta.text for delta in await other] == ["x"], steps
            assert [delta.text for delta in await collect(backend, question)] == ["x"], steps
            await backend.aclose()


async def test_a_request_cancelled_during_the_handshake_is_not_sent_but_the_connection_kept(
    make_ffm: Any, question: BackendRequest, collect: Any
) -> None:
    async with h2_service(events(FINAL)) as service:
        backend = make_ffm(service.url, ca_file=str(CA))
        await backend.prepare()
        await cancelled_after(20, collect(backend, question))
        await asyncio.wait(backend._http._ending)
        assert service.requests == []
        assert [delta.text for delta in await collect(backend, question)] == ["x"]
        assert service.connections == 1
