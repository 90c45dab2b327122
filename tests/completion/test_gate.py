"""The gate: latest wins, and a client's cancel wins over that."""

from __future__ import annotations

import asyncio

import pytest

from completion.gate import Gate, SupersededError


async def hold(gate: Gate, key: str, entered: asyncio.Event) -> str:
    async with gate.latest(key):
        entered.set()
        await asyncio.Event().wait()
    return "left"


async def begin(gate: Gate, key: str) -> asyncio.Task[str]:
    entered = asyncio.Event()
    task = asyncio.create_task(hold(gate, key, entered))
    await entered.wait()
    return task


async def test_a_newer_holder_supersedes_the_older_one_only_of_its_key() -> None:
    gate = Gate()
    older, other = await begin(gate, "a"), await begin(gate, "b")
    newer = await begin(gate, "a")
    with pytest.raises(SupersededError):
        await older
    assert older.cancelling() == 0
    assert not newer.done()
    assert not other.done()
    await gate.aclose()
    with pytest.raises(SupersededError):
        await newer
    with pytest.raises(SupersededError):
        await other


async def test_a_cancel_of_the_client_goes_through() -> None:
    gate = Gate()
    task = await begin(gate, "a")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("client_first", [True, False])
async def test_a_cancel_of_the_client_at_the_same_moment_wins(client_first: bool) -> None:
    gate = Gate()
    task = await begin(gate, "a")
    if client_first:
        task.cancel()
        gate.supersede("a")
    else:
        gate.supersede("a")
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_superseded_when_the_wait_was_over_already() -> None:
    """The task is about to run again when it is superseded: it must not leave as if nothing had happened."""
    gate, go, entered = Gate(), asyncio.Event(), asyncio.Event()

    async def work() -> str:
        async with gate.latest("a"):
            entered.set()
            await go.wait()
        await asyncio.sleep(0)  # a cancellation left over would come up here
        return "left"

    task = asyncio.create_task(work())
    await entered.wait()
    go.set()
    gate.supersede("a")
    with pytest.raises(SupersededError):
        await task


async def test_superseding_oneself_ends_at_the_exit_and_leaves_no_cancellation() -> None:
    gate = Gate()

    async def work() -> str:
        try:
            async with gate.latest("a"):
                gate.supersede("a")
        except SupersededError:
            await asyncio.sleep(0)
            return "superseded"
        return "left"

    assert await asyncio.create_task(work()) == "superseded"


async def test_other_errors_go_through() -> None:
    gate = Gate()
    with pytest.raises(LookupError):
        async with gate.latest("a"):
            raise LookupError
    gate.supersede("a")  # nobody is left in


async def test_closing_waits_for_those_on_their_way_out() -> None:
    gate, cleaned, go, entered = Gate(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with gate.latest("a"):
            try:
                entered.set()
                await asyncio.Event().wait()
            finally:
                await go.wait()
                cleaned.set()

    task = asyncio.create_task(work())
    await entered.wait()
    closing = asyncio.create_task(gate.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    go.set()
    await closing
    assert cleaned.is_set()
    with pytest.raises(SupersededError):
        await task
