"""Short ways to ask a backend in tests of one kind."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from backends.base import Backend, BackendRequest, ChatPrompt, Delta, InfillPrompt, Message, Piece, RawPrompt
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import TraceLog
from completion.types import Outcome
from tests.completion.desk import context
from tests.completion.fake_clock import FakeClock


def infill(prefix: str = "a = ", suffix: str = "\n", **settings: Any) -> BackendRequest:
    return BackendRequest(InfillPrompt(prefix, suffix), **{"max_tokens": 32, **settings})


def raw(text: str = "a = ", **settings: Any) -> BackendRequest:
    return BackendRequest(RawPrompt((Piece(text),)), **{"max_tokens": 32, **settings})


def chat(text: str = "Say a.", **settings: Any) -> BackendRequest:
    return BackendRequest(ChatPrompt((Message("user", text),)), **{"max_tokens": 32, **settings})


async def answer(backend: Backend, request: BackendRequest) -> list[Delta]:
    async with aclosing(backend.stream(request)) as deltas:
        return [delta async for delta in deltas]


async def text(backend: Backend, request: BackendRequest) -> str:
    return "".join(delta.text for delta in await answer(backend, request))


async def suggestion(backend: Backend, marked: str, **more: Any) -> Outcome:
    """What the whole engine makes of it. `marked` holds the cursor as `tests.completion.golden` writes it."""
    clock = FakeClock()
    traces = TraceLog(None, clock=clock)
    settings = EngineSettings(completion=CompletionSettings(debounce_ms=0, speculate="never"))
    engine = Engine([backend], settings, traces=traces, clock=clock)
    outcome = await engine.complete(context(marked, **more), traces.begin("1", "file:///a.py"))
    await engine.aclose()
    return outcome
