"""Several backends: in turn where they fail, side by side where one is slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from backends.base import BackendError, BackendRequest, ErrorKind, InfillPrompt, RawPrompt
from backends.scripted import Script, ScriptedBackend
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings, PrivacySettings
from completion.trace import RequestTrace, TraceLog
from completion.types import Completion, NoSuggestion, Outcome, Reason, Trigger
from tests.completion.desk import LOCAL, RAW, Notices, context, reason
from tests.completion.fake_clock import FakeClock

REMOTE = replace(LOCAL, remote=True)
KINDS = sorted(set(ErrorKind) - {ErrorKind.CONTEXT_TOO_LONG, ErrorKind.INFILL_UNSUPPORTED}, key=str)


def broken(kind: ErrorKind = ErrorKind.UNREACHABLE) -> list[BackendError]:
    return [BackendError(kind, "It is down.")]


class Team:
    """An engine over backends named `b0`, `b1` …, each with its script, which may be changed."""

    def __init__(self, *scripts: Script, settings: EngineSettings | None = None, hedge_ms: int = 0) -> None:
        self.clock = FakeClock()
        self.notices = Notices()
        self.lines: list[str] = []
        self.traces = TraceLog(self.lines.append, clock=self.clock)
        self.scripts = list(scripts)
        self.backends = [
            ScriptedBackend(f"b{number}", script=self._script(number), capabilities=LOCAL)
            for number in range(len(scripts))
        ]
        completion = CompletionSettings(debounce_ms=0, speculate="never")
        settings = replace(settings or EngineSettings(), completion=completion, hedge_ms=hedge_ms)
        self.engine = Engine(
            self.backends,
            settings,
            traces=self.traces,
            clock=self.clock,
            observer=self.notices,
            families={"b1": "qwen2.5-coder"},
        )
        self.trace: RequestTrace | None = None
        self.pieces: list[str] = []

    def _script(self, number: int) -> Callable[[BackendRequest], Script]:
        return lambda request: self.scripts[number]

    async def ask(self, marked: str = "x = ⟦|⟧\n", **more: Any) -> Outcome:
        trace = self.traces.begin("1", "file:///a.py")
        try:
            outcome = await self.engine.complete(context(marked, **more), trace, self.pieces.append)
        finally:
            self.trace = trace
        self.traces.finish(trace, outcome)
        return outcome

    def begin(self, marked: str = "x = ⟦|⟧\n", **more: Any) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.ask(marked, **more))

    @property
    def asked(self) -> list[int]:
        return [len(backend.requests) for backend in self.backends]

    @property
    def ended(self) -> list[tuple[int, int]]:
        """Of each backend: requests that came to their end, and those that were closed before it."""
        return [(backend.finished, backend.closed) for backend in self.backends]

    @property
    def record(self) -> Any:
        return json.loads(self.lines[-1])


def text(outcome: Outcome) -> str | None:
    return outcome.text if isinstance(outcome, Completion) else None


# In turn --------------------------------------------------------------------------------------------------------------


async def test_the_first_answers_alone_where_it_can() -> None:
    team = Team(["a"], ["b"])
    assert text(await team.ask()) == "a"
    assert team.asked == [1, 0]
    assert (team.record["backend"], team.record["failures"]) == ("b0", [])


@pytest.mark.parametrize("kind", KINDS)
async def test_the_next_is_asked_where_one_fails(kind: ErrorKind) -> None:
    team = Team(broken(kind), broken(kind), ["c"])
    assert text(await team.ask()) == "c"
    assert team.record["backend"] == "b2"
    assert team.record["failures"][-2:] == [f"b0:{kind.value}", f"b1:{kind.value}"]


async def test_one_that_cannot_be_made_ready_has_failed() -> None:
    def missing() -> None:
        raise BackendError(ErrorKind.SETTINGS, "The key is not set.")

    team = Team(["a"], ["b"])
    team.backends[0]._ready = missing
    assert text(await team.ask()) == "b"
    assert team.asked == [0, 1]


async def test_once_text_came_no_other_one_is_asked() -> None:
    team = Team(["a", *broken(ErrorKind.STREAM_ERROR)], ["b"])
    assert reason(await team.ask()) is Reason.BACKEND_ERROR
    assert team.asked == [1, 0]


async def test_an_answer_without_text_is_an_answer() -> None:
    team = Team([" "], ["b"])
    assert reason(await team.ask()) is Reason.EMPTY
    assert team.asked == [1, 0]


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (ErrorKind.TIMEOUT, Reason.TIMEOUT),
        (ErrorKind.AUTH, Reason.BACKEND_ERROR),
        (ErrorKind.BREAKER_OPEN, Reason.BREAKER_OPEN),
    ],
)
async def test_if_all_fail_the_last_one_says_why(last: ErrorKind, expected: Reason) -> None:
    team = Team(broken(), broken(last))
    assert await team.ask() == NoSuggestion(expected, "It is down.")
    assert team.asked == [1, 1]


async def test_each_gets_a_prompt_of_its_own() -> None:
    team = Team(broken(), ["b"])
    team.backends[1].capabilities = replace(RAW, context_tokens=400)
    await team.ask("".join(f"line_{n} = {n}\n" for n in range(500)) + "⟦|⟧\n")
    first, second = (backend.requests[0].prompt for backend in team.backends)
    assert isinstance(first, InfillPrompt)
    assert isinstance(second, RawPrompt)
    assert "<|fim_middle|>" in second.text, "the family its settings name"
    assert len(second.text) < len(first.prefix) / 5


async def test_only_backends_on_this_machine_are_asked_if_others_are_not_allowed() -> None:
    local_only = EngineSettings(privacy=PrivacySettings(allow_remote=False))
    team = Team(["a"], ["b"], settings=local_only)
    team.backends[0].capabilities = REMOTE
    assert text(await team.ask()) == "b"
    assert team.asked == [0, 1]
    team.backends[1].capabilities = REMOTE
    outcome = await team.ask("y = ⟦|⟧\n")
    assert outcome == NoSuggestion(Reason.NO_BACKEND, "The backend 'b0' is remote and privacy.allow_remote is false.")


async def test_keys_are_blanked_for_those_that_are_remote() -> None:
    team = Team(broken(), ["b"])
    team.backends[0].capabilities = REMOTE
    await team.ask("k = 'ghp_" + "A1b2C3d4E5" * 4 + "'\n⟦|⟧\n")
    first, second = (backend.requests[0].prompt for backend in team.backends)
    assert isinstance(first, InfillPrompt)
    assert isinstance(second, InfillPrompt)
    assert ("ghp_A1" in first.prefix, "ghp_A1" in second.prefix) == (False, True)


async def test_an_answer_of_the_second_serves_while_it_is_typed() -> None:
    team = Team(broken(), ["first second"])
    await team.ask("x = ⟦|⟧\n")
    team.scripts[0] = ["other"]
    assert text(await team.ask("x = first⟦|⟧\n")) == " second"
    assert (team.asked, team.record["cache"], team.record["backend"]) == ([1, 1], "typed-through", "b1")
    assert text(await team.ask("y = ⟦|⟧\n")) == "other"
    assert team.record["backend"] == "b0"


async def test_the_user_hears_once_of_each_change() -> None:
    team = Team(broken(), ["b"])
    await team.ask("a = ⟦|⟧\n")
    down = ("backend:b0:unreachable", "It is down. Until it answers again, the backend b1 is asked.", True)
    assert down in team.notices.seen
    team.scripts[0] = broken(ErrorKind.BREAKER_OPEN)
    told = len(team.notices.seen)
    await team.ask("b = ⟦|⟧\n")
    assert len(team.notices.seen) == told, "its cause was told"
    team.scripts[0] = ["a"]
    for name in "cd":
        await team.ask(f"{name} = ⟦|⟧\n")
    assert team.notices.seen[told:] == [("answers-again:b0", "The backend b0 answers again.", False)]


async def test_only_what_the_user_asks_for_is_explicit() -> None:
    team = Team(broken(), ["b"])
    await team.ask("a = ⟦|⟧\n")
    await team.ask("b = ⟦|⟧\n", trigger=Trigger.INVOKED)
    assert [[request.explicit for request in backend.requests] for backend in team.backends] == [[False, True]] * 2


# Side by side ---------------------------------------------------------------------------------------------------------


async def test_without_hedging_the_first_has_all_the_time() -> None:
    go = asyncio.Event()
    team = Team([go, "a"], ["b"])
    task = team.begin()
    await team.clock.advance(60)
    assert team.asked == [1, 0]
    go.set()
    assert text(await task) == "a"


async def test_a_slow_one_gets_company_and_the_first_good_text_wins() -> None:
    team = Team([asyncio.Event(), "a"], [asyncio.Event(), "b"], ["c"], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(0.099)
    assert team.asked == [1, 0, 0]
    await team.clock.advance(0.001)
    assert team.asked == [1, 1, 0]
    await team.clock.advance(0.1)
    assert text(await task) == "c"
    assert team.asked == [1, 1, 1]
    assert team.ended == [(0, 1), (0, 1), (1, 0)], "the others were cancelled"
    assert (team.record["backend"], team.record["failures"]) == ("b2", [])
    assert (team.record["dispatched"], team.record["first_delta"]) == (200.0, 200.0)
    assert team.pieces == ["c"]
    assert [key for key, _, _ in team.notices.seen if key.startswith(("backend:", "answers"))] == []


async def test_the_first_may_still_win() -> None:
    go = asyncio.Event()
    team = Team([go, "a"], ["b", asyncio.Event()], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(0.1)
    go.set()
    assert text(await task) == "a"
    assert team.ended == [(1, 0), (0, 1)]
    assert team.pieces == ["a"], "what the other one began is not shown"
    assert team.record["backend"] == "b0"


async def test_one_that_has_begun_gets_no_company_and_is_shown_at_once() -> None:
    go = asyncio.Event()
    team = Team(["a", go, "b"], ["c"], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(10)
    assert team.asked == [1, 0]
    assert team.pieces == ["a"]
    go.set()
    assert text(await task) == "ab"
    assert team.pieces == ["a", "b"]


@pytest.mark.parametrize(("other", "expected"), [(["b"], "b"), ([" "], None), (broken(), None)])
async def test_nothing_to_show_wins_only_if_no_other_has_more(other: Script, expected: str | None) -> None:
    go, later = asyncio.Event(), asyncio.Event()
    team = Team([go, " "], [later, *other], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(0.1)
    go.set()
    await team.clock.settle()
    assert not task.done()
    later.set()
    outcome = await task
    assert text(outcome) == expected
    assert (reason(outcome) is Reason.EMPTY) is (expected is None)
    assert team.record["backend"] == ("b1" if expected or other == [" "] else "b0")


async def test_nothing_to_show_in_time_is_an_answer() -> None:
    team = Team([" "], ["b"], hedge_ms=100)
    assert reason(await team.ask()) is Reason.EMPTY
    assert team.asked == [1, 0]


async def test_one_that_fails_is_replaced_at_once() -> None:
    team = Team(broken(), broken(), ["c"], hedge_ms=100)
    assert text(await team.ask()) == "c"  # the clock stood still
    assert team.record["failures"] == ["b0:unreachable", "b1:unreachable"]
    all_down = Team(broken(), broken(ErrorKind.TIMEOUT), hedge_ms=100)
    assert reason(await all_down.ask()) is Reason.TIMEOUT
    assert all_down.record["failures"] == ["b0:unreachable", "b1:timeout"]


async def test_one_that_fails_beside_another_leaves_it_alone() -> None:
    go, later = asyncio.Event(), asyncio.Event()
    team = Team([go, *broken()], [later, "b"], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(0.1)
    go.set()
    await team.clock.settle()
    assert not task.done()
    later.set()
    assert text(await task) == "b"
    (message,) = [message for key, message, _ in team.notices.seen if key == "backend:b0:unreachable"]
    assert message.endswith("the backend b1 is asked.")


async def test_what_was_shown_cannot_be_replaced() -> None:
    team = Team(["a", *broken()], ["b"], hedge_ms=100)
    assert reason(await team.ask()) is Reason.BACKEND_ERROR
    assert (team.asked, team.pieces) == ([1, 0], ["a"])


@pytest.mark.parametrize("how", ["cancel", "supersede"])
async def test_cancelling_ends_all_of_them(how: str) -> None:
    team = Team([asyncio.Event()], [asyncio.Event()], hedge_ms=100)
    task = team.begin()
    await team.clock.advance(0.1)
    assert team.asked == [1, 1]
    if how == "cancel":
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        team.engine.forget("file:///a.py")
        assert reason(await task) is Reason.SUPERSEDED
    await team.clock.settle()
    assert team.ended == [(0, 1), (0, 1)]
