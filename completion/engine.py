"""The pipeline from a cursor to a suggestion. Must not know LSP, HTTP or any one service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from backends.base import Backend, BackendError, ErrorKind, Observer, SilentObserver
from completion.cache import Cache
from completion.clock import Clock, SystemClock
from completion.gate import Gate, SupersededError
from completion.plan import Plan, Planner, misplaced, replaced
from completion.privacy import Policy
from completion.quiet import unwanted
from completion.relay import Relay
from completion.route import Asked, OnText, Route, finished
from completion.settings import CompletionSettings, EngineSettings
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

_GUESSED: Mapping[str, str] = MappingProxyType({})
_REASONS = {ErrorKind.TIMEOUT: Reason.TIMEOUT, ErrorKind.BREAKER_OPEN: Reason.BREAKER_OPEN}

_NO_BACKEND = (
    "No backend can be used. Either set `backend` and a [backends.<name>] table, or install the extra `local`."
    " `midfill doctor` says how."
)
_NOT_REMOTE = "The backend {name!r} is remote and {why}."


class Engine:
    """Answers requests one per document at a time. Settings never change: make another engine instead.

    `backends` are asked in this order; `families` names the prompt family of those whose model's name does not say it.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        settings: EngineSettings,
        *,
        traces: TraceLog,
        families: Mapping[str, str] = _GUESSED,
        clock: Clock | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._settings = settings
        self._traces = traces
        self._clock = clock or SystemClock()
        self._observer = observer or SilentObserver()
        self._gate = Gate(self._clock)
        self._cache = Cache(settings.completion.cache_entries)
        self._policy = Policy(settings, self._clock)
        self._warmer = Warmer()
        self._relay = Relay(settings.hedge_ms / 1000, self._clock, self._observer)
        self._routes = [Route(backend, self._planner(backend, families)) for backend in backends]

    async def complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText | None = None) -> Outcome:
        """The suggestion for `context`, or why there is none.

        `on_text` gets the answer piece by piece as the model writes it, before the filters. BackendError never leaves
        this function, the caller's own cancellation does. A newer call for the same document ends this one at once.
        """
        self._warmer.stop()
        try:
            async with self._gate.latest(context.document.uri):
                return await self._complete(context, trace, on_text or _nobody)
        except SupersededError:
            return NoSuggestion(Reason.SUPERSEDED)
        except BackendError as error:
            return NoSuggestion(_REASONS.get(error.kind, Reason.BACKEND_ERROR), error.message)

    def warm(self, context: CompletionContext, *, guessed: bool = False) -> None:
        """Have the prompt evaluated that `context` would lead to, in the background, until the next request.

        `guessed`: where the cursor is was not told. Does nothing for backends that evaluate elsewhere, or for money.
        """
        settings = self._settings.for_language(context.document.language_id)
        routes = self._allowed(context.document)
        if self._gate.busy or self._refusal(context, settings, routes) is not None:
            return
        if not routes[0].backend.capabilities.remote:
            self._warmer.start(partial(routes[0].warm, context, settings, guessed=guessed))

    def forget(self, uri: str) -> None:
        """The document was closed: its pending request ends as superseded."""
        self._gate.supersede(uri)
        for route in self._routes:
            route.forget(uri)

    def saved(self, uri: str) -> None:
        """The document was saved: if it says which files are ignored, that holds from now on."""
        self._policy.ignored.saved(uri)

    def left_out(self, document: DocumentSnapshot) -> str:
        """Why a document is not shown to the first backend, as the end of a sentence; nothing, if it may be."""
        remote = bool(self._routes) and self._routes[0].backend.capabilities.remote
        return self._policy.left_out(document, remote=remote)

    def clear_cache(self) -> None:
        self._cache.clear()

    async def aclose(self) -> None:
        """End pending requests as superseded and wait until they are out. The backend stays open."""
        await self._warmer.aclose()
        await self._gate.aclose()

    async def _complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText) -> Outcome:
        settings = self._settings.for_language(context.document.language_id)
        routes = self._allowed(context.document)
        refusal = self._refusal(context, settings, routes)
        if refusal is not None:
            return refusal
        plan = routes[0].plan(context, settings)
        for route in routes:
            found = self._cache.lookup(_scope(route, context), plan.window)
            if found is None:
                continue
            outcome = _outcome(found.raw, plan, context, trace, found.typed)
            # All that was shown may be typed, though the answer itself goes on: then it is used up.
            if isinstance(outcome, Completion) or not found.typed:
                trace.cache, trace.backend = "typed-through" if found.typed else "hit", route.name
                on_text(found.raw.text[found.typed :])
                return outcome
        if context.trigger is Trigger.AUTOMATIC:
            reason = unwanted(context, plan.window)
            if reason is not None:
                return NoSuggestion(reason)
            received = trace.received if context.received is None else context.received
            await self._gate.quiet(received, settings.debounce_ms / 1000)
        trace.debounced = trace.elapsed()
        answer = await self._relay.ask(routes, Asked(context, settings, plan), trace, on_text)
        self._cache.store(_scope(answer.route, context), plan.window, answer.raw)
        return _outcome(answer.raw, answer.plan, context, trace)

    def _planner(self, backend: Backend, families: Mapping[str, str]) -> Planner:
        hidden = self._policy.hidden(remote=backend.capabilities.remote)
        return Planner(self._settings, families.get(backend.name, ""), self._observer, hidden, self._clock)

    def _allowed(self, document: DocumentSnapshot) -> list[Route]:
        if self._settings.privacy.allow_remote and not self._policy.stays(document):
            return self._routes
        return [route for route in self._routes if not route.backend.capabilities.remote]

    def _refusal(
        self, context: CompletionContext, settings: CompletionSettings, routes: Sequence[Route]
    ) -> NoSuggestion | None:
        if not settings.enabled:
            return NoSuggestion(Reason.DISABLED)
        if why := self._policy.ignored.why(context.document):
            return NoSuggestion(Reason.IGNORED_FILE, why)
        if misplaced(context):
            return NoSuggestion(Reason.STALE, "the chosen entry of the menu is not where the cursor is")
        if not self._routes:
            return NoSuggestion(Reason.NO_BACKEND, _NO_BACKEND)
        if not routes:
            why = self._policy.stays(context.document)
            return NoSuggestion(Reason.NO_BACKEND, not_remote(self._routes[0].name, self._settings, why))
        if context.trigger is Trigger.AUTOMATIC and _mid_word(context):
            return NoSuggestion(Reason.MID_WORD)
        return None


def not_remote(name: str, settings: EngineSettings, why: str = "") -> str:
    """Why a remote backend is not asked, for a document that stays here because of `why`; a sentence."""
    return _NOT_REMOTE.format(name=name, why=why if settings.privacy.allow_remote else settings.no_remote)


def _outcome(
    raw: RawCompletion, plan: Plan, context: CompletionContext, trace: RequestTrace, typed: int = 0
) -> Outcome:
    result = finished(raw, plan, typed)
    trace.filters = (*raw.filters, *result.filters)
    if result.reason is not None:
        return NoSuggestion(result.reason)
    begin, (start, end) = context.selected.text if context.selected else "", plan.hole
    return Completion(begin + result.text, start - result.before, end + result.after, id=trace.id)


def _nobody(text: str) -> None:
    pass


def _scope(route: Route, context: CompletionContext) -> tuple[str, str, str]:
    """What decides an answer beside the text. Settings of a language are fixed, so its id stands for them."""
    return route.backend.fingerprint, context.document.uri, context.document.language_id


def _mid_word(context: CompletionContext) -> bool:
    (start, end), inserted = replaced(context)
    around = context.document.text.slice(start - 1, end + 1)  # one look: start and end are mostly the same place
    before = inserted[-1:] or (around[:1] if start > 0 else "")
    after = around[end - max(0, start - 1) :]
    return _word(before) and _word(after)


def _word(character: str) -> bool:
    return character == "_" or character.isalnum()
