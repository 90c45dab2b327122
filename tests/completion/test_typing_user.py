"""A user who types, mistypes, accepts, cancels and goes back, in two documents, at a backend that is slow and fails.

Whatever the cache, joined requests and requests made ahead do: an answer is what an engine that remembers nothing says
at that place, or where the user was before typing on.
"""

from __future__ import annotations

import asyncio
import gc
import random
import zlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from backends.base import BackendError, BackendRequest, Capabilities, Delta, ErrorKind, Finish, InfillPrompt, Shape
from backends.scripted import ScriptedBackend
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import TraceLog
from completion.types import (
    Completion,
    CompletionContext,
    DocumentSnapshot,
    NoSuggestion,
    Outcome,
    PlainText,
    Selected,
    Trigger,
)
from tests.completion.fake_clock import FakeClock

WORDS = ("foo", "bar(", "x)", " + ", "1", "\n", "    ", "return ", "𝒳", "é", "if a:\n    ", "else:", "}", ", ", "\n\n")
ERRORS = (ErrorKind.UNREACHABLE, ErrorKind.BREAKER_OPEN, ErrorKind.TIMEOUT, ErrorKind.OVERLOADED)
URIS = ("file:///a.py", "file:///b.py")
ANSWERS = 3  # different ones at each place
PLAIN = CompletionSettings(
    debounce_ms=0, cache_entries=0, join=False, adaptive_debounce=False, speculate="never", time_budget_ms=0
)


def answer(prompt: object, number: int) -> str:
    """What the model says at a place, always the same."""
    assert isinstance(prompt, InfillPrompt)
    place = repr((prompt.prefix[-40:], prompt.suffix[:10], number))
    rng = random.Random(zlib.crc32(place.encode()))
    return "".join(rng.choice(WORDS) for _ in range(rng.choice((0, 1, 3, 6, 12))))


class Model(ScriptedBackend):
    def __init__(self, name: str, capabilities: Capabilities, clock: FakeClock, rng: random.Random) -> None:
        super().__init__(name, capabilities=capabilities)
        self.clock, self.rng, self.alive = clock, rng, 0
        self.failures, self.latency = rng.choice((0, 0.2)), rng.choice((0, 0.05, 0.3, 3))

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        rng = self.rng
        self.alive += 1
        try:
            await self.clock.sleep(self.latency)
            if rng.random() < self.failures:
                raise BackendError(rng.choice(ERRORS), "no")
            first = rng.randrange(ANSWERS) if request.temperature else 0
            texts = [answer(request.prompt, number % ANSWERS) for number in range(first, first + request.candidates)]
            while any(texts):
                index = rng.choice([index for index, text in enumerate(texts) if text])
                length = rng.randrange(1, 6)
                yield Delta(texts[index][:length], index=index)
                texts[index] = texts[index][length:]
                await self.clock.sleep(rng.choice((0, 0, 0.02)))
            yield Delta("", Finish.STOP)
        finally:
            self.alive -= 1


class Forgetful(ScriptedBackend):
    number = 0

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        yield Delta(answer(request.prompt, self.number), Finish.STOP)


@dataclass(frozen=True, slots=True)
class Place:
    uri: str
    before: str
    after: str

    def context(self, **more: Any) -> CompletionContext:
        document = DocumentSnapshot(self.uri, "python", 1, PlainText(self.before + self.after), "a.py")
        return CompletionContext(document, len(self.before), **more)

    def accepted(self, completion: Completion) -> Place:
        """Where the cursor is afterwards."""
        text = self.before + self.after
        return Place(self.uri, text[: completion.start] + completion.text, text[completion.end :])

    def text(self) -> str:
        return (self.before + self.after).replace("\r\n", "\n")


class User:
    def __init__(self, rng: random.Random) -> None:
        self.rng, self.clock = rng, FakeClock()
        self.traces = TraceLog(None, clock=self.clock)
        capabilities = Capabilities(frozenset({Shape.INFILL}), remote=rng.random() < 0.5, several=rng.random() < 0.5)
        self.models = [Model(name, capabilities, self.clock, rng) for name in "ab"[: rng.choice((1, 2))]]
        self.settings = replace(
            PLAIN,
            debounce_ms=rng.choice((0, 120)),
            cache_entries=rng.choice((0, 3, 200)),
            join=rng.random() < 0.8,
            speculate=rng.choice(("never", "always")),
            multiline=rng.choice(("auto", "always", "never")),
        )
        settings = EngineSettings(completion=self.settings, hedge_ms=rng.choice((0, 100)))
        self.engine = Engine(self.models, settings, traces=self.traces, clock=self.clock)
        end = rng.choice(("\n", "\r\n"))
        self.places = {uri: Place(uri, f"import os{end}x = ", rng.choice(("", end, f"){end}"))) for uri in URIS}
        self.past = list(self.places.values())
        self.shown: dict[str, tuple[Place, Completion]] = {}
        self.asked: list[tuple[asyncio.Task[Outcome], Place, CompletionContext]] = []
        self.cancelled: set[asyncio.Task[Outcome]] = set()

    async def key(self) -> None:
        rng, deleted = self.rng, ""
        place = self.places[rng.choice((URIS[0], URIS[0], URIS[0], URIS[1]))]
        before, after = place.before, place.after
        rest, number = self._rest(place), rng.random()
        if number < 0.6:
            before += rest[: rng.choice((1, 1, 1, 4, 99))].replace("\r", "") if rest else rng.choice("f(x 𝒳")
        elif number < 0.75:
            deleted = before[-1:]
            before = before[: -2 if before.endswith("\r\n") else -1]
        elif number < 0.85:
            old = rng.choice(self.past)
            before, after, place = old.before, old.after, old
        place = self.places[place.uri] = Place(place.uri, before, after)
        self.past.append(place)
        if rng.random() < 0.8:
            self.engine.edited(place.uri, lambda: place.context().document)
        if self.asked and rng.random() < 0.4 and self.asked[-1][0].cancel():
            self.cancelled.add(self.asked[-1][0])
        if rng.random() < 0.9:
            self._ask(place, deleted)

    def _rest(self, place: Place) -> str:
        """What is left of the suggestion on the screen."""
        asked, completion = self.shown.get(place.uri, (place, None))
        goal = asked.accepted(completion) if completion else place
        goes_on = goal.after == place.after and goal.before.startswith(place.before)
        return goal.before[len(place.before) :] if goes_on else ""

    def _ask(self, place: Place, deleted: str) -> None:
        trigger = self.rng.choice((Trigger.AUTOMATIC,) * 5 + (Trigger.INVOKED,))
        at = len(place.before)
        chosen = Selected(place.before[-1:] + "oo", at - 1, at) if self.rng.random() < 0.05 else None
        selected = chosen if place.before[-1:].isalpha() else None
        context = place.context(
            trigger=trigger, selected=selected, deleted=deleted, candidates=8, received=self.clock.now()
        )

        async def ask() -> Outcome:
            outcome = await self.engine.complete(context, self.traces.begin("1", place.uri), lambda text: None)
            if isinstance(outcome, Completion):
                self.shown[place.uri] = place, outcome
            return outcome

        self.asked.append((asyncio.create_task(ask()), place, context))

    async def pause(self) -> None:
        number = self.rng.random()
        if number < 0.5:
            await self.clock.advance(self.rng.choice((0.01, 0.04, 0.2, 3)))
        elif number < 0.8:
            await asyncio.sleep(0)
        if number < 0.02:
            self.engine.forget(URIS[0])
        elif number > 0.98:
            self.engine.clear_cache()


async def said(context: CompletionContext, settings: CompletionSettings) -> set[str]:
    """All that an engine that remembers nothing makes of the document, accepted in one document or the other."""
    backend = Forgetful(capabilities=Capabilities(frozenset({Shape.INFILL})))
    plain = replace(PLAIN, multiline=settings.multiline)
    traces, found = TraceLog(None, clock=FakeClock()), set()
    engine = Engine([backend], EngineSettings(completion=plain), traces=traces, clock=FakeClock())
    for trigger in Trigger:
        for backend.number in range(ANSWERS):
            asked = replace(context, trigger=trigger, deleted="", candidates=1)
            outcome = await engine.complete(asked, traces.begin("1", "u"))
            if isinstance(outcome, Completion):
                text = context.document.text.slice(0, len(context.document.text))
                found.add((text[: outcome.start] + outcome.text + text[outcome.end :]).replace("\r\n", "\n"))
    return found


async def would_have_said(place: Place, result: str, settings: CompletionSettings) -> bool:
    """Whether `result` is what accepting leads to here, or where `place` was typed on from."""
    for end in range(len(place.before), max(-1, len(place.before) - 200), -1):
        earlier = Place(place.uri, place.before[:end], place.after)
        if not earlier.before.endswith("\r") and result in await said(earlier.context(), settings):
            return True
    return False


@pytest.mark.parametrize("seed", range(20))
async def test_every_request_has_one_answer_that_the_model_gave(seed: int) -> None:
    user = User(random.Random(seed))
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(str(what.get("message"))))
    for _ in range(40):
        await user.key()
        await user.pause()
    closing = asyncio.create_task(user.engine.aclose())
    await user.clock.advance(10)
    await closing
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [model.alive for model in user.models] == [0] * len(user.models)
    for task, place, context in user.asked:
        if task.cancelled():
            assert task in user.cancelled
            continue
        outcome = task.result()
        if isinstance(outcome, NoSuggestion):
            continue
        for each in (outcome, *outcome.others):
            assert 0 <= each.start <= context.offset <= each.end <= len(place.before + place.after)
            assert not {"\n", "\r"} & set((place.before + place.after)[each.start : each.end])
            chosen = context.selected
            typed = replace(place, before=place.before[: chosen.start] + chosen.text) if chosen else place
            assert await would_have_said(typed, place.accepted(each).text(), user.settings)
    del user, task
    gc.collect()
    assert complaints == []
