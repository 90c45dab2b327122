"""A likely prompt is evaluated ahead, on this machine only, and never in a request's way."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import replace

import pytest

from backends.base import BackendError, BackendRequest, Capabilities, ErrorKind
from backends.scripted import Script
from completion.settings import CompletionSettings, EngineSettings, PrivacySettings
from completion.types import Completion
from tests.completion.desk import LOCAL, Desk, context

WARMS = replace(LOCAL, warms=True)


async def warmed(desk: Desk, marked: str, *, guessed: bool = False, uri: str = "file:///a.py") -> list[BackendRequest]:
    """What the backend was asked to evaluate."""
    desk.engine.warm(context(marked, uri=uri), guessed=guessed)
    await desk.clock.settle()
    return [request for request in desk.backend.requests if request.max_tokens == 0]


async def test_the_prompt_is_the_one_a_request_leads_to() -> None:
    desk = Desk(capabilities=WARMS)
    (request,) = await warmed(desk, "a = 1\nb = ⟦|⟧\n")
    await desk.ask("a = 1\nb = ⟦|⟧\n")
    assert desk.backend.requests[1].prompt == request.prompt
    assert desk.backend.requests[1].max_tokens > 0


@pytest.mark.parametrize("capabilities", [LOCAL, replace(WARMS, remote=True)])
async def test_only_where_it_costs_nothing(capabilities: Capabilities) -> None:
    assert await warmed(Desk(capabilities=capabilities), "a = 1\nb = ⟦|⟧\n") == []


async def test_nothing_of_ignored_files_and_disabled_languages() -> None:
    ignoring = EngineSettings(privacy=PrivacySettings(ignore=("secret.py",)))
    assert await warmed(Desk(capabilities=WARMS, settings=ignoring), "a = ⟦|⟧", uri="file:///secret.py") == []
    disabled = EngineSettings(completion=CompletionSettings(enabled=False))
    assert await warmed(Desk(capabilities=WARMS, settings=disabled), "a = ⟦|⟧") == []


async def test_of_a_guessed_place_only_a_document_that_is_seen_whole() -> None:
    long = "value = 1\n" * 3000
    assert len(await warmed(Desk(capabilities=WARMS), f"{long}⟦|⟧")) == 1
    assert await warmed(Desk(capabilities=WARMS), f"{long}⟦|⟧", guessed=True) == []
    assert len(await warmed(Desk(capabilities=WARMS), "value = 1\n⟦|⟧", guessed=True)) == 1
    assert await warmed(Desk(capabilities=WARMS), "  \n⟦|⟧", guessed=True) == []


async def test_a_request_ends_it_and_so_does_the_next_one() -> None:
    held = asyncio.Event()

    def script(request: BackendRequest) -> Script:
        return ("done",) if request.max_tokens else (held,)

    desk = Desk(script, capabilities=WARMS)
    assert len(await warmed(desk, "a = ⟦|⟧")) == 1
    assert len(await warmed(desk, "b = ⟦|⟧")) == 2
    assert desk.backend.closed == 1
    outcome = await desk.ask("b = ⟦|⟧")
    assert isinstance(outcome, Completion)
    await desk.clock.settle()
    assert (desk.backend.closed, desk.backend.finished) == (2, 1)


async def test_not_beside_a_request() -> None:
    held = asyncio.Event()
    desk = Desk((held, "done"), capabilities=WARMS)
    asked = desk.begin("a = ⟦|⟧")
    await desk.clock.settle()
    assert await warmed(desk, "b = ⟦|⟧", uri="file:///b.py") == []
    held.set()
    assert isinstance(await asked, Completion)
    assert len(await warmed(desk, "b = ⟦|⟧", uri="file:///b.py")) == 1


async def test_a_request_may_come_before_it_has_begun() -> None:
    """Nothing is left over that was never awaited: warnings are errors here."""
    desk = Desk(capabilities=WARMS)
    desk.engine.warm(context("a = ⟦|⟧"))
    assert isinstance(await desk.ask("a = ⟦|⟧"), Completion)
    gc.collect()
    assert [request.max_tokens > 0 for request in desk.backend.requests] == [True]


async def test_it_ends_with_the_engine_and_tells_nobody_of_errors() -> None:
    held = asyncio.Event()
    desk = Desk((held,), capabilities=WARMS)
    await warmed(desk, "a = ⟦|⟧")
    await desk.engine.aclose()
    assert desk.backend.closed == 1
    failing = Desk((BackendError(ErrorKind.CRASHED, "gone"),), capabilities=WARMS)
    assert len(await warmed(failing, "a = ⟦|⟧")) == 1
    assert not any(warning for _, _, warning in failing.notices.seen)
