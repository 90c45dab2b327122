"""From a request that may be asked to its outcome: what is known, what is on its way, how long to wait, what to ask.

Must not know why something may not be asked at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from completion import auto_closed
from completion.cache import Cache, Found
from completion.clock import Clock
from completion.flight import DivergedError, Flight, StaleError
from completion.learning import Learned
from completion.plan import Plan
from completion.quiet import unwanted
from completion.relay import Relay
from completion.rhythm import Rhythm
from completion.route import Answer, Asked, OnText, Route, finished, nobody
from completion.settings import CompletionSettings
from completion.spliced import accepted
from completion.trace import RequestTrace, TraceLog
from completion.types import (
    Completion,
    CompletionContext,
    DocumentSnapshot,
    NoSuggestion,
    Outcome,
    RawCompletion,
    Reason,
    Trigger,
)
from completion.warm import Warmer

_ROOM_S = 0.02  # seconds of a wait in which context can be chosen anew, which takes up to 10 ms

_STALE = "the document has changed"
_UNWANTED = "suggestions in this language are mostly rejected, and this one is short"


@dataclass(frozen=True, slots=True)
class Question:
    """A request that may be asked of `routes`, at least one, in this order; planned for the first of them."""

    context: CompletionContext
    settings: CompletionSettings
    routes: Sequence[Route]
    plan: Plan

    @property
    def automatic(self) -> bool:
        return self.context.trigger is Trigger.AUTOMATIC

    @property
    def candidates(self) -> int:
        return 1 if self.automatic else max(1, min(self.context.candidates, self.settings.max_candidates))


class Pilot:
    def __init__(self, cache: Cache, relay: Relay, learned: Learned, traces: TraceLog, clock: Clock) -> None:
        self._cache = cache
        self._relay = relay
        self._learned = learned
        self._traces = traces
        self._clock = clock
        self._rhythm = Rhythm()
        self._flights: dict[str, Flight] = {}  # the newest of each document, while its task is not done
        self._aloft: set[Flight] = set()  # all whose tasks are not done
        self._named: dict[str, tuple[RawCompletion, str]] = {}  # by document: what was suggested last, and its id
        self._ahead = Warmer()

    @property
    def busy(self) -> bool:
        return bool(self._aloft)

    def edited(self, uri: str, now: Callable[[], DocumentSnapshot]) -> None:
        """The document is as `now` gives it: what is on its way for it ends unless it may still fit."""
        flight = self._flights.get(uri)
        if flight is not None and not flight.over:
            flight.edited(now())

    def forget(self, uri: str) -> None:
        self._named.pop(uri, None)
        flight = self._flights.pop(uri, None)
        if flight is not None:
            flight.cancel()
        self._ahead.stop()  # it may be for this document

    async def aclose(self) -> None:
        await self._ahead.aclose()
        for flight in self._aloft:
            flight.cancel()
        if self._aloft:
            await asyncio.wait({flight.task for flight in self._aloft})

    async def answer(self, question: Question, trace: RequestTrace, on_text: OnText) -> Outcome:
        """Raises BackendError."""
        received = trace.received if question.context.received is None else question.context.received
        if question.automatic:
            self._rhythm.key(received)
        known = self._known(question, trace, on_text)
        if known is not None:
            return known
        old = self._flights.get(question.context.document.uri)
        if old is not None and not old.over:
            unjoined = trace.fork()
            try:
                joined = await self._join(old, question, trace, on_text)
            except DivergedError:
                joined = None
                trace.take(unjoined)  # nothing of this request has happened yet
            except StaleError:
                return NoSuggestion(Reason.STALE, _STALE)
            if joined is not None:
                return joined
        if question.automatic:
            deleted = Reason.DELETION if question.context.deleted else None
            reason = deleted or unwanted(question.context, question.plan.window)
            if reason is not None:
                return NoSuggestion(reason)
            await self._quiet(question, received)
        if old is not None and old.cold:
            await old.heard.wait()  # asked anew, the service would begin again to load its model
            old.cancel()
        return await self._ask(question, trace, on_text)

    def _known(self, question: Question, trace: RequestTrace, on_text: OnText) -> Outcome | None:
        for route in question.routes:
            found, plan = self._found(route, question)
            if found is None or found.raw.asked_for < question.candidates:
                continue
            outcome = self._outcome(found.raw, plan, question, trace, found.typed)
            # All that was shown may be typed, though the answer itself goes on: then it is used up.
            if isinstance(outcome, Completion) or not found.typed:
                trace.cache, trace.backend = "typed-through" if found.typed else "hit", route.name
                on_text(found.raw.text[found.typed :])
                if not found.typed:
                    self._prepare_next(question, outcome, route)
                return outcome
        return None

    def _found(self, route: Route, question: Question) -> tuple[Found | None, Plan]:
        """What is known, and the plan it fits: what the editor has closed behind the cursor may be replaced."""
        plan, scope = question.plan, _scope(route, question.context)
        found = self._cache.lookup(scope, plan.window)
        if found is None and question.context.selected is None:
            for count in auto_closed.counts(plan.window.suffix):
                wider = _without(plan, count)
                found = self._cache.lookup(scope, wider.window)
                if found is not None and found.typed:
                    typed = plan.window.prefix[-found.typed :]
                    if auto_closed.behind(typed, plan.window.suffix) >= count:
                        return found, wider
                found = None
        return found, plan

    async def _join(self, old: Flight, question: Question, trace: RequestTrace, on_text: OnText) -> Outcome | None:
        """The outcome of what is on its way already; None if that does not fit, and is left alone or ended.

        Raises DivergedError, StaleError, BackendError.
        """
        insertion = old.typed(question.context) if question.settings.join and question.candidates == 1 else None
        if insertion is None:
            if old.cold and question.automatic:
                old.edited(question.context.document)
            else:
                old.cancel()
            return None
        typed, closed = insertion
        trace.cache = "joined"
        try:
            answer = await old.wait(on_text, typed)
        finally:
            trace.join(old.trace)
        if not answer.raw.text.startswith(typed):
            raise DivergedError
        outcome = self._outcome(answer.raw, _without(question.plan, closed), question, trace, len(typed))
        if typed and not isinstance(outcome, Completion):
            raise DivergedError  # all of it was typed
        self._prepare_next(question, outcome, answer.route)
        return outcome

    async def _quiet(self, question: Question, received: float) -> None:
        """Wait until the user has paused. What is shown beside the window is chosen meanwhile."""
        settings, context, route = question.settings, question.context, question.routes[0]
        seconds = settings.debounce_ms / 1000
        if route.warm_for(context.document.uri) and settings.adaptive_debounce:
            seconds = 0.0  # this machine answers at once, and costs nothing
        elif settings.adaptive_debounce:
            window = question.plan.window
            patience = self._learned.patience(context.document.language_id) if settings.learning else 1.0
            seconds = self._rhythm.wait(seconds, window.lead, window.rest, route.latencies, patience)
        if received + seconds - self._clock.now() > _ROOM_S:
            route.refresh(context, settings)
        left = received + seconds - self._clock.now()
        if left > 0:
            await self._clock.sleep(left)

    async def _ask(self, question: Question, trace: RequestTrace, on_text: OnText) -> Outcome:
        trace.debounced = trace.elapsed()
        self._ahead.stop()
        uri = question.context.document.uri
        asked = Asked(question.context, question.settings, question.plan, question.candidates)
        record = trace.fork()
        remote = any(route.backend.capabilities.remote for route in question.routes)
        work = partial(self._fly, question, asked, record)
        flight = Flight(question.context, question.plan, record, self._clock, remote=remote, work=work)
        if uri in self._flights:
            self._flights[uri].cancel()
        self._flights[uri] = flight
        self._aloft.add(flight)
        flight.task.add_done_callback(lambda _: self._landed(uri, flight))
        try:
            answer = await flight.wait(on_text)
        except StaleError:
            return NoSuggestion(Reason.STALE, _STALE)
        except DivergedError:
            return NoSuggestion(Reason.SUPERSEDED)
        finally:
            trace.take(record)
        outcome = self._outcome(answer.raw, answer.plan, question, trace)
        self._prepare_next(question, outcome, answer.route)
        return outcome

    def _landed(self, uri: str, flight: Flight) -> None:
        self._aloft.discard(flight)
        if self._flights.get(uri) is flight:
            del self._flights[uri]

    async def _fly(self, question: Question, asked: Asked, record: RequestTrace, on_text: OnText) -> Answer:
        answer = await self._relay.ask(question.routes, asked, record, on_text)
        self._cache.store(_scope(answer.route, question.context), question.plan.window, answer.raw)
        return answer

    def _outcome(
        self, raw: RawCompletion, plan: Plan, question: Question, trace: RequestTrace, typed: int = 0
    ) -> Outcome:
        context = question.context
        outcome = outcome_of(raw, plan, context, trace, typed)
        if raw.more and question.candidates > 1:
            outcome = _choice(outcome, raw, plan, question, trace, typed)
        elif isinstance(outcome, Completion) and question.automatic and question.settings.learning:
            least = self._learned.least(context.document.language_id)
            # Of a suggestion that is typed, all counts that was shown: it does not vanish towards its end.
            if least > 1 and len("".join((raw.text[:typed] + outcome.text).split())) < least:
                return NoSuggestion(Reason.TOO_SHORT, _UNWANTED)
        return self._with_id(outcome, raw, context.document.uri, typed) if isinstance(outcome, Completion) else outcome

    def _with_id(self, outcome: Completion, raw: RawCompletion, uri: str, typed: int) -> Completion:
        """What is left of a suggestion while it is typed is still that suggestion: what becomes of it counts once."""
        last, name = self._named.get(uri, (None, ""))
        if typed and last is not None:
            for number, each in enumerate((last, *last.more), start=1):
                if each is raw:
                    return replace(outcome, id=_numbered(name, number))
        self._named[uri] = (raw, outcome.id)
        return outcome

    def _prepare_next(self, question: Question, outcome: Outcome, route: Route) -> None:
        """While the suggestion is shown in an editor, ask for what would follow it, if that costs nothing."""
        when = question.settings.speculate
        may = when == "always" or (when == "local" and not route.backend.capabilities.remote)
        in_editor = question.automatic or question.context.candidates > 1
        if may and in_editor and isinstance(outcome, Completion):
            context = accepted(question.context, outcome)
            self._ahead.start(partial(self._speculate, replace(question, context=context, routes=(route,))))

    async def _speculate(self, question: Question) -> None:
        (route,) = question.routes
        plan = route.plan(question.context, question.settings)
        scope = _scope(route, question.context)
        if self.busy or self._cache.lookup(scope, plan.window) is not None:
            return
        trace = self._traces.begin("", question.context.document.uri)  # what is sent is never kept a secret
        try:
            answer = await route.ask(Asked(question.context, question.settings, plan), trace, nobody)
            self._cache.store(scope, plan.window, answer.raw)
        finally:
            if trace.dispatched is not None:
                self._traces.finish(trace, NoSuggestion(Reason.AHEAD))


def _without(plan: Plan, count: int) -> Plan:
    """`plan` with so many characters behind the cursor to be replaced, too."""
    if not count:
        return plan
    window = replace(plan.window, suffix=plan.window.suffix[count:])
    return replace(plan, window=window, hole=(plan.hole[0], plan.hole[1] + count))


def _choice(
    outcome: Outcome, raw: RawCompletion, plan: Plan, question: Question, trace: RequestTrace, typed: int
) -> Outcome:
    """`outcome`, which is that of `raw`, with the other answers that would be shown, or the first of those instead."""
    found = [outcome] if isinstance(outcome, Completion) else []
    for number, more in enumerate(raw.more[: question.candidates - 1], start=2):
        if not more.text.startswith(raw.text[:typed]):
            continue
        filters = trace.filters
        other = outcome_of(more, plan, question.context, trace, typed)
        if found or not isinstance(other, Completion):
            trace.filters = filters
        if isinstance(other, Completion) and all(other.text != each.text for each in found):
            found.append(replace(other, id=_numbered(other.id, number)) if found else other)
    return replace(found[0], others=tuple(found[1:])) if found else outcome


def _numbered(name: str, number: int) -> str:
    """The id of one of several answers to the same question."""
    return name if number == 1 else f"{name}.{number}"


def outcome_of(
    raw: RawCompletion, plan: Plan, context: CompletionContext, trace: RequestTrace, typed: int = 0
) -> Outcome:
    result = finished(raw, plan, typed)
    trace.filters = (*raw.filters, *result.filters)
    if result.reason is not None:
        return NoSuggestion(result.reason)
    if result.before and "\n" in raw.text[:typed]:
        return NoSuggestion(Reason.STALE)  # the line is done whose beginning it would change
    begin, (start, end) = context.selected.text if context.selected else "", plan.hole
    inside = min(result.before, len(begin))  # what is replaced stands in the chosen entry first
    return Completion(
        begin[: len(begin) - inside] + result.text, start - (result.before - inside), end + result.after, id=trace.id
    )


def _scope(route: Route, context: CompletionContext) -> tuple[str, str, str]:
    """What decides an answer beside the text. Settings of a language are fixed, so its id stands for them."""
    return route.backend.fingerprint, context.document.uri, context.document.language_id
