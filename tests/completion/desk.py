"""An engine on a scripted backend with all it needs, and short ways to ask it. A module of helpers for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from backends.base import BackendRequest, Capabilities, Shape
from backends.scripted import Script, ScriptedBackend
from completion.engine import Engine
from completion.learning import Learned
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import RequestTrace, TraceLog
from completion.types import (
    CompletionContext,
    DocumentSnapshot,
    NoSuggestion,
    Outcome,
    PlainText,
    Reason,
    Selected,
    Trigger,
)
from tests.completion.fake_clock import FakeClock
from tests.completion.golden import at_cursor

LOCAL = Capabilities(frozenset({Shape.INFILL, Shape.RAW}), remote=False)
RAW = Capabilities(frozenset({Shape.RAW}), remote=False)


class Notices:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bool]] = []

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        self.seen.append((key, message, warning))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        raise AssertionError("the engine itself does no long work")


class Desk:
    """An engine with all it needs, and short ways to ask it."""

    def __init__(
        self,
        script: Callable[[BackendRequest], Script] | Script = ("done",),
        *,
        capabilities: Capabilities = LOCAL,
        settings: EngineSettings | None = None,
        backend: bool = True,
        text: bool = False,
        learned: Learned | None = None,
        **completion: Any,
    ) -> None:
        self.clock = FakeClock()
        self.lines: list[str] = []
        self.notices = Notices()
        self.traces = TraceLog(self.lines.append, clock=self.clock, text=text)
        given = script
        self.backend = ScriptedBackend(script=given if callable(given) else lambda _: given, capabilities=capabilities)
        settings = settings or EngineSettings(
            completion=CompletionSettings(
                **{"debounce_ms": 0, "speculate": "never", "adaptive_debounce": False, **completion}
            )
        )
        self.engine = Engine(
            [self.backend] if backend else [],
            settings,
            traces=self.traces,
            clock=self.clock,
            observer=self.notices,
            learned=learned,
        )
        self.trace: RequestTrace | None = None
        self.asked = 0  # requests; their ids count from 1

    async def ask(self, marked: str, *, on_text: Callable[[str], None] | None = None, **more: Any) -> Outcome:
        self.asked += 1
        trace = self.traces.begin(str(self.asked), more.get("uri", "file:///a.py"))
        outcome = await self.engine.complete(context(marked, **more), trace, on_text)
        self.traces.finish(trace, outcome)
        self.trace = trace
        return outcome

    def begin(self, marked: str, **more: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.ask(marked, **more))


def context(
    marked: str,
    *,
    uri: str = "file:///a.py",
    path: str | None = "a.py",
    language: str = "python",
    trigger: Trigger = Trigger.AUTOMATIC,
    others: tuple[DocumentSnapshot, ...] = (),
    selected: Selected | None = None,
    received: float | None = None,
    deleted: str = "",
    candidates: int = 1,
) -> CompletionContext:
    text, offset = at_cursor(marked)
    document = DocumentSnapshot(uri, language, 1, PlainText(text), path)
    return CompletionContext(document, offset, trigger, selected, "repo", others, received, deleted, candidates)


def other(name: str, text: str, language: str = "python") -> DocumentSnapshot:
    return DocumentSnapshot(f"file:///{name}", language, 1, PlainText(text), name)


def reason(outcome: Outcome) -> Reason | None:
    return outcome.reason if isinstance(outcome, NoSuggestion) else None
