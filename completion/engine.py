"""The pipeline from a cursor to a suggestion. Must not know LSP, HTTP or any one service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from backends.base import Backend, BackendError, ErrorKind, Observer, SilentObserver
from completion.cache import Cache
from completion.clock import Clock, SystemClock
from completion.gate import Gate, SupersededError
from completion.learning import Learned
from completion.pilot import Pilot, Question
from completion.plan import Planner, misplaced, replaced
from completion.privacy import Policy
from completion.relay import Relay
from completion.route import OnText, Route, nobody
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import RequestTrace, TraceLog
from completion.types import CompletionContext, DocumentSnapshot, NoSuggestion, Outcome, Reason, Trigger
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
        learned: Learned | None = None,
    ) -> None:
        self._settings = settings
        self._traces = traces
        self._clock = clock or SystemClock()
        self._observer = observer or SilentObserver()
        self._gate = Gate()
        self._cache = Cache(settings.completion.cache_entries)
        self._policy = Policy(settings, self._clock)
        self._warmer = Warmer()
        relay = Relay(settings.hedge_ms / 1000, self._clock, self._observer)
        self._pilot = Pilot(self._cache, relay, learned or Learned(), traces, self._clock)
        self._routes = [Route(backend, self._planner(backend, families)) for backend in backends]

    async def complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText | None = None) -> Outcome:
        """The suggestion for `context`, or why there is none.

        `on_text` gets the answer piece by piece as the model writes it, before the filters. BackendError never leaves
        this function, the caller's own cancellation does. A newer call for the same document ends this one at once.
        """
        self._warmer.stop()
        try:
            async with self._gate.latest(context.document.uri):
                return await self._complete(context, trace, on_text or nobody)
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
        if self._gate.busy or self._pilot.busy or self._refusal(context, settings, routes) is not None:
            return
        routes[0].refresh(context, settings)
        if not routes[0].backend.capabilities.remote:
            self._warmer.start(partial(routes[0].warm, context, settings, guessed=guessed))

    def edited(self, uri: str, now: Callable[[], DocumentSnapshot]) -> None:
        """The document is as `now` gives it: what is on its way for it ends, unless what was typed agrees with it."""
        self._pilot.edited(uri, now)

    def forget(self, uri: str) -> None:
        """The document was closed: its pending request ends as superseded."""
        self._gate.supersede(uri)
        self._pilot.forget(uri)
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
        await self._pilot.aclose()

    async def _complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText) -> Outcome:
        settings = self._settings.for_language(context.document.language_id)
        routes = self._allowed(context.document)
        refusal = self._refusal(context, settings, routes)
        if refusal is not None:
            return refusal
        question = Question(context, settings, routes, routes[0].plan(context, settings))
        return await self._pilot.answer(question, trace, on_text)

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


def _mid_word(context: CompletionContext) -> bool:
    (start, end), inserted = replaced(context)
    around = context.document.text.slice(start - 1, end + 1)  # one look: start and end are mostly the same place
    before = inserted[-1:] or (around[:1] if start > 0 else "")
    after = around[end - max(0, start - 1) :]
    return _word(before) and _word(after)


def _word(character: str) -> bool:
    return character == "_" or character.isalnum()
