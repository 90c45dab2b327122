"""The scripted backend keeps the contract it stands in for."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from backends.base import BackendError, BackendRequest, Delta, ErrorKind, Finish, InfillPrompt, Usage
from backends.scripted import CUT_OFF, Script, ScriptedBackend
from backends.settings import BackendSettings

REQUEST = BackendRequest(InfillPrompt("a", "b"), 10)


async def run(script: Script) -> list[Delta]:
    async with aclosing(ScriptedBackend(script=lambda _: script).stream(REQUEST)) as deltas:
        return [delta async for delta in deltas]


async def test_texts_end_with_a_finish() -> None:
    assert await run(["a", "b"]) == [Delta("a"), Delta("b"), Delta("", Finish.STOP)]


async def test_nothing_follows_a_finish() -> None:
    last = Delta("a", Finish.LENGTH, Usage(1, 2, 3))
    assert await run([last, "b"]) == [last]


async def test_cut_off_has_no_finish() -> None:
    assert await run(["a", CUT_OFF]) == [Delta("a")]


async def test_errors_are_raised_where_they_stand() -> None:
    async with aclosing(
        ScriptedBackend(script=lambda _: ["a", BackendError(ErrorKind.AUTH, "no")]).stream(REQUEST)
    ) as deltas:
        assert await anext(deltas) == Delta("a")
        with pytest.raises(BackendError, match="no"):
            await anext(deltas)


async def test_counts_of_begun_finished_and_closed() -> None:
    event = asyncio.Event()
    backend = ScriptedBackend(script=lambda _: ["a", event, "b"])
    async with aclosing(backend.stream(REQUEST)) as deltas:
        assert await anext(deltas) == Delta("a")
    assert (len(backend.requests), backend.finished, backend.closed) == (1, 0, 1)
    event.set()
    async with aclosing(backend.stream(REQUEST)) as deltas:
        assert len([delta async for delta in deltas]) == 3
    assert (len(backend.requests), backend.finished, backend.closed) == (2, 1, 1)


async def test_from_settings_alone() -> None:
    backend = ScriptedBackend("demo", BackendSettings("scripted", parameters={"deltas": ["x"]}))
    await backend.prepare()
    async with aclosing(backend.stream(REQUEST)) as deltas:
        assert [delta.text async for delta in deltas] == ["x", ""]
    assert all(check.ok for check in (await backend.probe()).checks)
    wrong = ScriptedBackend("demo", BackendSettings("scripted", parameters={"deltas": "x"}))
    with pytest.raises(BackendError) as caught:
        async with aclosing(wrong.stream(REQUEST)) as deltas:
            await anext(deltas)
    assert caught.value.kind is ErrorKind.SETTINGS
