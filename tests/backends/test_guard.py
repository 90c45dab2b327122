"""The guard around a backend: second tries, and the breaker with its probe."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from backends.base import BackendError, BackendRequest, Delta, ErrorKind, Finish, Piece, RawPrompt
from backends.guard import ANSWERS, AT_ONCE, LONGEST_OPEN_S, Guard
from backends.scripted import CUT_OFF, Script, ScriptedBackend
from backends.settings import BackendSettings
from tests.completion.fake_clock import FakeClock

REQUEST = BackendRequest(RawPrompt((Piece("a"),)), max_tokens=8)
EXPLICIT = dataclasses.replace(REQUEST, explicit=True)
DOWN = [BackendError(ErrorKind.UNREACHABLE, "work cannot be reached.")]
OPEN = ErrorKind.BREAKER_OPEN


def error(kind: ErrorKind, after_s: float | None = None) -> list[BackendError]:
    return [BackendError(kind, f"it said {kind.value}.", retry_after_s=after_s)]


class Bench:
    """A guard around a scripted backend. `script` is used up answer by answer; the last one stays."""

    def __init__(self, *script: Script, ready: Callable[[], None] | None = None, **settings: Any) -> None:
        self.clock = FakeClock()
        self.script: list[Script] = list(script)
        self.told: list[str] = []
        self.inner = ScriptedBackend("work", script=self._answer, ready=ready)
        self.guard = Guard(
            self.inner,
            BackendSettings(kind="scripted", **settings),
            self,
            now=self.clock.now,
            sleep=self.clock.sleep,
            jitter=lambda: 0.5,
        )

    def _answer(self, request: BackendRequest) -> Script:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        assert not warning
        self.told.append(message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        raise AssertionError

    @property
    def asked(self) -> int:
        return len(self.inner.requests)

    async def ask(self, request: BackendRequest = REQUEST, *, enough: int = 100) -> str | ErrorKind:
        """The text, of `enough` deltas at most, or the kind of the failure."""
        texts: list[str] = []
        try:
            await self.guard.prepare()
            async with aclosing(self.guard.stream(request)) as deltas:
                async for delta in deltas:
                    texts.append(delta.text)
                    if len(texts) == enough:
                        break
        except BackendError as failed:
            self.failed = failed
            return failed.kind
        return "".join(texts)

    def begin(self, request: BackendRequest = REQUEST) -> asyncio.Task[str | ErrorKind]:
        return asyncio.create_task(self.ask(request))

    async def after(self, seconds: float, request: BackendRequest = REQUEST) -> str | ErrorKind:
        """Ask, and let the time pass that the guard pauses."""
        task = self.begin(request)
        await self.clock.advance(seconds)
        assert task.done()
        return task.result()


async def test_what_is_inside_shows_through() -> None:
    bench = Bench(["a", "b"])
    assert await bench.ask() == "ab"
    guard, inner = bench.guard, bench.inner
    assert (guard.name, guard.model, guard.fingerprint) == (inner.name, inner.model, inner.fingerprint)
    assert guard.capabilities is inner.capabilities
    assert (await guard.probe()).checks
    assert bench.told == []


@pytest.mark.parametrize("kind", [ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED])
async def test_a_busy_service_is_asked_once_more(kind: ErrorKind) -> None:
    bench = Bench(error(kind), ["a"])
    task = bench.begin()
    await bench.clock.advance(0.29)
    assert bench.asked == 1
    await bench.clock.advance(0.01)
    assert (await task, bench.asked) == ("a", 2)
    always = Bench(error(kind))
    assert (await always.after(10), always.asked) == (kind, 2)


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - {ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED}, key=str))
async def test_other_failures_are_not_tried_again(kind: ErrorKind) -> None:
    bench = Bench(error(kind))
    assert (await bench.ask(), bench.asked) == (kind, 1)


async def test_nothing_is_tried_again_once_text_came() -> None:
    bench = Bench(["a", *error(ErrorKind.OVERLOADED)])
    assert (await bench.after(10), bench.asked) == (ErrorKind.OVERLOADED, 1)


@pytest.mark.parametrize(("after_s", "tries"), [(1.0, 2), (1.7, 2), (1.8, 1), (300.0, 1)])
async def test_retry_after_is_obeyed(after_s: float, tries: int) -> None:
    bench = Bench(error(ErrorKind.RATE_LIMITED, after_s), ["a"])
    task = bench.begin()
    await bench.clock.advance(after_s)
    assert bench.asked == 1
    await bench.clock.advance(0.4)
    assert (bench.asked, task.done()) == (tries, True)


async def test_no_second_try_beyond_the_deadline() -> None:
    bench = Bench(error(ErrorKind.OVERLOADED, 1.0), ["a"], timeout_s=1.2)
    assert (await bench.after(5), bench.asked) == (ErrorKind.OVERLOADED, 1)


async def test_the_second_try_ends_at_the_deadline_of_the_first() -> None:
    never = asyncio.Event()
    bench = Bench(error(ErrorKind.OVERLOADED), [never], timeout_s=0.31)
    task = bench.begin()
    await bench.clock.advance(0.3)
    assert await task is ErrorKind.TIMEOUT  # after what is left of it, 10 ms of real time
    assert "0.31 s (timeout_s)" in bench.failed.message
    assert bench.inner.closed == 1


async def test_no_second_try_after_cancelling() -> None:
    bench = Bench(error(ErrorKind.OVERLOADED))
    task = bench.begin()
    await bench.clock.advance(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await bench.clock.advance(10)
    assert bench.asked == 1


async def test_the_first_text_has_a_deadline_of_its_own() -> None:
    never = asyncio.Event()
    bench = Bench(["", never], first_token_timeout_s=0.01)
    assert await bench.ask() is ErrorKind.TIMEOUT
    assert "0.01 s (first_token_timeout_s)" in bench.failed.message
    assert bench.inner.closed == 1


async def test_after_the_first_text_that_deadline_counts_no_more() -> None:
    steps = [asyncio.Event(), asyncio.Event()]
    bench = Bench(["a", steps[0], "b", steps[1], "c"], first_token_timeout_s=5)
    task = bench.begin()
    for step in steps:
        await bench.clock.advance(10)
        step.set()
    assert await task == "abc"


FAILING = sorted(set(ErrorKind) - AT_ONCE - ANSWERS - {OPEN}, key=str)


@pytest.mark.parametrize("kind", FAILING)
async def test_the_third_failure_in_a_row_opens_the_breaker(kind: ErrorKind) -> None:
    bench = Bench(error(kind))
    assert [await bench.after(1) for _ in range(3)] == [kind] * 3
    asked = bench.asked
    assert await bench.ask() is OPEN
    assert bench.asked == asked
    assert bench.guard.open
    assert f"it said {kind.value}. The backend work is not asked again for 1 s" in bench.failed.message


@pytest.mark.parametrize("kind", sorted(AT_ONCE, key=str))
async def test_what_comes_back_at_every_key_opens_it_at_once(kind: ErrorKind) -> None:
    bench = Bench(error(kind))
    assert (await bench.ask(), await bench.ask(), bench.asked) == (kind, OPEN, 1)


@pytest.mark.parametrize("kind", sorted(ANSWERS, key=str))
async def test_a_service_that_wants_another_question_works(kind: ErrorKind) -> None:
    bench = Bench(DOWN, DOWN, error(kind), DOWN, DOWN, ["a"])
    kinds = [await bench.ask() for _ in range(6)]
    assert kinds[2:] == [kind, ErrorKind.UNREACHABLE, ErrorKind.UNREACHABLE, "a"]


async def test_success_and_early_stopping_begin_the_count_anew() -> None:
    bench = Bench(DOWN, DOWN, ["a", "b", "c"], DOWN, DOWN, ["a", "b"], DOWN)
    for enough in (100, 1):
        for _ in range(2):
            assert await bench.ask() is ErrorKind.UNREACHABLE
        assert await bench.ask(enough=enough) == "abc"[: min(enough, 3)]
    assert not bench.guard.open


async def test_a_cancelled_request_is_neither_failure_nor_success() -> None:
    never = asyncio.Event()
    bench = Bench(DOWN, DOWN, [never], ["a", never], DOWN, ["a"])
    for _ in range(2):
        await bench.ask()
    for _ in range(2):
        task = bench.begin()
        await bench.clock.settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert not bench.guard.open
    assert await bench.ask() is ErrorKind.UNREACHABLE
    assert bench.guard.open, "two before, one after: three in a row"


async def test_a_stream_that_just_ends_is_no_success() -> None:
    bench = Bench(DOWN, DOWN, [CUT_OFF], DOWN)
    for _ in range(4):
        await bench.ask()
    assert bench.guard.open


async def opened(*rest: Script) -> Bench:
    bench = Bench(*[DOWN] * 3, *rest)
    for _ in range(3):
        await bench.ask()
    assert bench.guard.open
    return bench


async def test_after_a_pause_one_probe_decides() -> None:
    go = asyncio.Event()
    bench = await opened([go, "a"])
    await bench.clock.advance(1.9)
    assert await bench.ask() is OPEN
    await bench.clock.advance(0.2)
    probe = bench.begin()
    await bench.clock.settle()
    assert await bench.ask() is OPEN, "one at a time"
    go.set()
    assert await probe == "a"
    assert (await bench.ask(), bench.asked) == ("a", 5)
    assert bench.told == ["The backend work answers again."]


async def test_the_pause_grows_with_each_probe_that_fails_to_a_limit() -> None:
    bench = await opened(DOWN)
    pauses: list[float] = []
    for _ in range(8):
        before, begun = bench.asked, bench.clock.now()
        while bench.asked == before:
            await bench.clock.advance(1)
            await bench.ask()
        pauses.append(bench.clock.now() - begun)
    assert pauses == [2, 4, 8, 16, 32, 60, 60, LONGEST_OPEN_S]
    bench.script = [["a"], DOWN]
    await bench.clock.advance(60)
    assert await bench.ask() == "a"
    for _ in range(3):
        assert await bench.ask() is ErrorKind.UNREACHABLE
    await bench.clock.advance(2)
    assert await bench.ask() is ErrorKind.UNREACHABLE, "short again after it worked"


async def test_a_probe_is_not_tried_again() -> None:
    bench = await opened(error(ErrorKind.OVERLOADED))
    await bench.clock.advance(2)
    assert (await bench.after(10), bench.asked) == (ErrorKind.OVERLOADED, 4)


async def test_a_cancelled_probe_leaves_all_as_it_was_for_a_little() -> None:
    never = asyncio.Event()
    bench = await opened([never], ["a"])
    await bench.clock.advance(2)
    probe = bench.begin()
    await bench.clock.settle()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await bench.ask() is OPEN
    await bench.clock.advance(2)
    assert await bench.ask() == "a"


@pytest.mark.parametrize("kind", [ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED])
async def test_nothing_is_sent_before_retry_after_has_passed(kind: ErrorKind) -> None:
    bench = Bench(error(kind, 100.0), ["a"])
    assert await bench.ask() is kind
    await bench.clock.advance(99)
    assert await bench.ask() is OPEN
    assert bench.failed.retry_after_s == pytest.approx(1.0)
    await bench.clock.advance(1)
    assert await bench.ask() == "a"


async def test_an_explicit_request_probes_sooner() -> None:
    bench = await opened(["a"])
    assert await bench.ask() is OPEN
    assert await bench.ask(EXPLICIT) == "a"
    assert await bench.ask() == "a"


async def test_requests_from_before_it_opened_neither_close_it_nor_prolong_it() -> None:
    go = asyncio.Event()
    bench = Bench([go, "a"], [go, *DOWN], error(ErrorKind.AUTH), ["b"])
    early = [bench.begin(), bench.begin()]
    await bench.clock.settle()
    assert await bench.ask() is ErrorKind.AUTH
    go.set()
    assert await asyncio.gather(*early) == ["a", ErrorKind.UNREACHABLE]
    assert await bench.ask() is OPEN
    await bench.clock.advance(2)
    assert await bench.ask() == "b"


async def test_a_backend_that_cannot_be_made_ready_is_left_alone_too() -> None:
    calls: list[int] = []

    def ready() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise BackendError(ErrorKind.SETTINGS, "The key is not set.")

    bench = Bench(["a"], ready=ready)
    assert [await bench.ask(), await bench.ask(), len(calls)] == [ErrorKind.SETTINGS, OPEN, 1]
    await bench.clock.advance(2)
    assert [await bench.ask(), await bench.ask(), len(calls)] == [ErrorKind.SETTINGS, OPEN, 2]
    await bench.clock.advance(4)
    assert [await bench.ask(), len(calls), bench.asked] == ["a", 3, 1]


async def test_usage_and_finish_pass_unchanged() -> None:
    last: Sequence[Delta] = (Delta("a"), Delta("b", Finish.LENGTH))
    bench = Bench(last)
    async with aclosing(bench.guard.stream(REQUEST)) as deltas:
        assert tuple([delta async for delta in deltas]) == last


@pytest.mark.parametrize("first_token_timeout_s", [0.0, 60.0])
async def test_a_bug_of_a_backend_is_a_failure_like_the_rest(
    caplog: pytest.LogCaptureFixture, first_token_timeout_s: float
) -> None:
    bench = Bench(first_token_timeout_s=first_token_timeout_s)  # no script: an IndexError
    assert await bench.ask() is ErrorKind.PROTOCOL
    assert bench.failed.message == "The backend work (kind scripted) has a bug: IndexError. The log says where."
    assert isinstance(bench.failed.__cause__, IndexError)
    assert caplog.records[0].exc_info
    bench.script = [["a"]]
    assert await bench.ask() == "a"
    assert len(caplog.records) == 1


async def test_a_bug_while_it_is_made_ready_is_one_too(caplog: pytest.LogCaptureFixture) -> None:
    def ready() -> None:
        raise ZeroDivisionError

    assert await Bench(["a"], ready=ready).ask() is ErrorKind.PROTOCOL
    assert "bug in the backend work" in caplog.text


async def test_what_its_consumer_raises_is_not_the_backend_s(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(["a", "b"])

    async def consume() -> None:
        async with aclosing(bench.guard.stream(REQUEST)) as deltas:
            async for _ in deltas:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consume()
    assert (bench.guard.open, caplog.records) == (False, [])
