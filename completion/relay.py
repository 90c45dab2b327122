"""Which backend answers: one after the other where they fail, or the next one beside the first where that is slow.

Must not know how a backend is asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from backends.base import BackendError, ErrorKind, Observer
from completion.clock import Clock
from completion.route import Answer, Asked, OnText, Route
from completion.trace import RequestTrace


class Relay:
    """`hedge_s`: seconds after which the next route is started if no text came; 0: only when one has failed."""

    def __init__(self, hedge_s: float, clock: Clock, observer: Observer) -> None:
        self._hedge_s = hedge_s
        self._clock = clock
        self._observer = observer
        self._replaced: set[str] = set()  # backends for which another one has answered since they did themselves

    async def ask(self, routes: Sequence[Route], asked: Asked, trace: RequestTrace, on_text: OnText) -> Answer:
        """The first answer of `routes`, at least one, in their order. `asked` is planned for the first of them.

        Raises the BackendError of the last one if all failed, or that of one that had written text.
        """
        if self._hedge_s > 0 and len(routes) > 1:
            answer = await _Race(self, routes, asked, trace, on_text).run(self._hedge_s, self._clock)
        else:
            answer = await self._in_turn(routes, asked, trace, on_text)
        name = answer.route.name
        if name in self._replaced:
            self._replaced.discard(name)
            self._observer.notice(f"answers-again:{name}", f"The backend {name} answers again.", warning=False)
        return answer

    async def _in_turn(self, routes: Sequence[Route], asked: Asked, trace: RequestTrace, on_text: OnText) -> Answer:
        error = None
        for route, following in zip_longest(routes, routes[1:]):
            try:
                return await route.ask(planned(asked, route, routes), trace, on_text)
            except BackendError as failed:
                error = failed
                self.failed(failed, route, following, trace)
                if trace.first_delta is not None:
                    break
        assert error is not None
        raise error

    def failed(self, error: BackendError, route: Route, following: Route | None, trace: RequestTrace) -> None:
        """Note a failure and tell its cause, once. What opened a breaker was told then."""
        trace.failures.append(f"{route.name}:{error.kind.value}")
        if following is not None:
            self._replaced.add(route.name)
        if error.kind is ErrorKind.BREAKER_OPEN:
            return
        instead = f" Until it answers again, the backend {following.name} is asked." if following else ""
        self._observer.notice(f"backend:{route.name}:{error.kind.value}", error.message + instead)


def planned(asked: Asked, route: Route, routes: Sequence[Route]) -> Asked:
    """`asked`, planned for the first of `routes`, as `route` needs it: budgets, windows and shapes differ."""
    return asked if route is routes[0] else replace(asked, plan=route.plan(asked.context, asked.settings))


@dataclass(slots=True)
class _Runner:
    route: Route
    trace: RequestTrace
    held: list[str] = field(default_factory=list)
    seen: bool = False  # some of its text went out


class _Race:
    """Routes side by side. The first answer of which something would be shown wins, the others are cancelled."""

    def __init__(
        self, relay: Relay, routes: Sequence[Route], asked: Asked, trace: RequestTrace, on_text: OnText
    ) -> None:
        self._relay = relay
        self._routes = routes
        self._waiting = deque(routes)
        self._running: dict[asyncio.Task[Answer], _Runner] = {}
        self._asked = asked
        self._trace = trace
        self._on_text = on_text

    async def run(self, hedge_s: float, clock: Clock) -> Answer:
        """Raises BackendError."""
        blank: tuple[Answer, RequestTrace] | None = None
        error: BackendError | None = None
        due = True
        try:
            while self._running or (due and self._waiting):
                if due and self._waiting:
                    self._start(self._waiting.popleft())
                ended = await self._ended(hedge_s, clock)
                due = ended is None
                if ended is None:
                    continue
                runner = self._running.pop(ended)
                self._trace.take(runner.trace)
                try:
                    answer = ended.result()
                except BackendError as failed:
                    error, due = failed, True
                    self._relay.failed(failed, runner.route, self._following(), self._trace)
                    if runner.seen:
                        raise
                    continue
                if answer.good or runner.seen:
                    self._emit(runner)
                    return answer
                blank = answer, runner.trace
        finally:
            await self._stop()
        if blank is None:
            assert error is not None
            raise error
        self._trace.take(blank[1])
        return blank[0]

    def _start(self, route: Route) -> None:
        runner = _Runner(route, self._trace.fork())

        def on_text(text: str) -> None:
            runner.held.append(text)
            if len(self._running) == 1:  # no other one can win
                self._emit(runner)

        work = route.ask(planned(self._asked, route, self._routes), runner.trace, on_text)
        self._running[asyncio.ensure_future(work)] = runner

    def _emit(self, runner: _Runner) -> None:
        for text in runner.held:
            runner.seen = True
            self._on_text(text)
        runner.held.clear()

    def _following(self) -> Route | None:
        """Who answers in place of one that has failed."""
        beside = next(iter(self._running.values()), None)
        return beside.route if beside else self._waiting[0] if self._waiting else None

    async def _ended(self, hedge_s: float, clock: Clock) -> asyncio.Task[Answer] | None:
        """Wait for a route to end; None if the next one is due before that, as none has sent text."""
        timer = asyncio.ensure_future(clock.sleep(hedge_s)) if self._waiting else None
        try:
            while True:
                for task in self._running:
                    if task.done():
                        return task
                ringing = timer is not None and not timer.done()
                if timer and not ringing and all(each.trace.first_delta is None for each in self._running.values()):
                    return None
                awaited = {*self._running, timer} if timer and ringing else {*self._running}
                await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                timer.cancel()

    async def _stop(self) -> None:
        """Cancel what still runs, and wait until it has closed its connections."""
        for task, runner in self._running.items():
            task.cancel()
            if self._trace.dispatched is None:  # cancelled from outside: none has ended
                self._trace.take(runner.trace)
        if self._running:
            await asyncio.wait(self._running)
        for task in self._running:
            if not task.cancelled():
                task.exception()  # it lost: nobody needs to hear of it
