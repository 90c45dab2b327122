"""One backend with all it takes to ask it: its prompts, its windows. Must not know which backend is asked when."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from backends.base import Backend, BackendError, BackendRequest, ErrorKind, Finish, Shape, Usage
from completion import indents, postprocess
from completion.cells import cell_mark
from completion.multiline import Extent
from completion.plan import Plan, Planner, shape_of, shown
from completion.prompt import Built
from completion.prompt.families import UNMISTAKABLE
from completion.settings import CompletionSettings
from completion.several import beside, split
from completion.stopping import Stream, stop_early
from completion.tokens import estimate
from completion.trace import RequestTrace, Sent
from completion.types import CompletionContext, RawCompletion, Trigger

OnText = Callable[[str], None]

_LATENCIES = 10  # requests whose time to first text is remembered
_HELD = 4  # documents whose prompts a local engine is sure to hold
_OTHERS_TEMPERATURE = 0.7  # of further answers: greedy ones would all be the same


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, planned for one route."""

    context: CompletionContext
    settings: CompletionSettings
    plan: Plan
    candidates: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    route: Route
    plan: Plan
    raw: RawCompletion

    @property
    def good(self) -> bool:
        """Whether something of it would be shown."""
        return finished(self.raw, self.plan).reason is None


class Route:
    def __init__(self, backend: Backend, planner: Planner) -> None:
        self.backend = backend
        self.latencies: deque[float] = deque(maxlen=_LATENCIES)  # from a request to its first text, seconds
        self._planner = planner
        self._evaluated: OrderedDict[str, None] = OrderedDict()  # documents whose prompt the backend may still hold

    @property
    def name(self) -> str:
        return self.backend.name

    def plan(self, context: CompletionContext, settings: CompletionSettings) -> Plan:
        return self._planner.plan(context, settings, self.backend.capabilities)

    def refresh(self, context: CompletionContext, settings: CompletionSettings) -> None:
        """Choose anew what is shown beside the window, if that is due. Takes up to 10 ms."""
        self._planner.refresh(context, settings, self.backend.capabilities)

    def warm_for(self, uri: str) -> bool:
        """Whether this machine has the prompt of this document evaluated but for what was just typed."""
        return uri in self._evaluated and self.backend.capabilities.warms

    def forget(self, uri: str) -> None:
        self._planner.forget(uri)
        self._evaluated.pop(uri, None)

    async def ask(self, asked: Asked, trace: RequestTrace, on_text: OnText) -> Answer:
        """Ask; again with another shape of prompt, or with a smaller window, if the backend says that it needs that.

        Raises BackendError.
        """
        trace.backend = self.name
        await self.backend.prepare()
        plan, capabilities = asked.plan, self.backend.capabilities
        refused: frozenset[Shape] = frozenset()
        shrunk = False
        while True:
            if plan.capabilities != capabilities or shrunk:
                plan = self._planner.plan(asked.context, asked.settings, capabilities)
            built = self._planner.build(plan, asked.context, self.backend.model)
            request = _request(built, plan, asked)
            try:
                raw = await self._answers(request, built, plan, asked, trace, on_text)
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
                now = self.backend.capabilities
                capabilities = replace(now, shapes=now.shapes - refused)
                if not capabilities.shapes:
                    raise
            else:
                self._now_warm(asked.context)
                return Answer(self, plan, raw)

    async def warm(self, context: CompletionContext, settings: CompletionSettings, *, guessed: bool) -> None:
        """Have the likely prompt evaluated, if the backend can. Raises BackendError.

        `guessed`: the cursor may be anywhere. Then only a document that is shown whole is worth the time.
        """
        await self.backend.prepare()
        capabilities = self.backend.capabilities
        if not capabilities.warms:
            return
        plan = self._planner.plan(context, settings, capabilities)
        if guessed and (plan.window.start > 0 or not plan.window.prefix.strip()):
            return
        built = self._planner.build(plan, context, self.backend.model)
        async with aclosing(self.backend.stream(BackendRequest(built.prompt, max_tokens=0))) as deltas:
            async for _ in deltas:
                pass
        self._now_warm(context)

    def _now_warm(self, context: CompletionContext) -> None:
        self._evaluated[context.document.uri] = None
        self._evaluated.move_to_end(context.document.uri)
        if len(self._evaluated) > _HELD:
            self._evaluated.popitem(last=False)

    async def _answers(
        self, request: BackendRequest, built: Built, plan: Plan, asked: Asked, trace: RequestTrace, on_text: OnText
    ) -> RawCompletion:
        """As many different answers as are wanted and can be had, one after the other in `more`."""
        count = asked.candidates
        if count == 1:
            return await self._stream(request, built, plan, asked, trace, on_text)
        if plan.capabilities.several:
            _note(request, built, plan, asked.context, trace)

            async def read(stream: Stream, index: int) -> RawCompletion:
                return await _read(stream, built, plan, asked, trace, nobody if index else on_text)

            stream = _watched(self.backend.stream(replace(request, candidates=count)), trace)
            answers = await split(stream, count, read)
        else:
            warmer = max(request.temperature, _OTHERS_TEMPERATURE)
            another = replace(request, temperature=warmer, sampling=replace(request.sampling, temperature=warmer))
            answers = await beside(
                self._stream(request, built, plan, asked, trace, on_text),
                [self._stream(another, built, plan, asked, trace.fork(), nobody) for _ in range(count - 1)],
            )
        return replace(answers[0], more=tuple(answers[1:]), asked_for=count)

    async def _stream(
        self,
        request: BackendRequest,
        built: Built,
        plan: Plan,
        asked: Asked,
        trace: RequestTrace,
        on_text: OnText,
    ) -> RawCompletion:
        _note(request, built, plan, asked.context, trace)
        raw = await _read(_watched(self.backend.stream(request), trace), built, plan, asked, trace, on_text)
        if trace.first_delta is not None and trace.dispatched is not None:
            self.latencies.append((trace.first_delta - trace.dispatched) / 1000)
        return raw


def _note(request: BackendRequest, built: Built, plan: Plan, context: CompletionContext, trace: RequestTrace) -> None:
    trace.dispatched = trace.elapsed()
    trace.shape, trace.family = shape_of(request.prompt).value, built.family
    trace.files, trace.pieces = tuple(file.path for file in plan.extra), plan.pieces
    trace.sent = Sent(request.prompt, context.document, plan.window, built.stand_ins)
    trace.prompt = shown(request.prompt) if trace.text else None


async def _read(
    answer: Stream, built: Built, plan: Plan, asked: Asked, trace: RequestTrace, on_text: OnText
) -> RawCompletion:
    stopped: list[str] = []
    stream = stop_early(
        answer,
        terminators=built.terminators,
        mends=built.mends,
        block=plan.extent is not Extent.LINE,
        statement=plan.window.rest if plan.extent is Extent.STATEMENT else None,
        max_lines=asked.settings.max_lines,
        next_line=next((line for line in plan.window.suffix.split("\n")[1:] if line.strip()), ""),
        lead=plan.window.lead,
        language_id=plan.language_id,
        reply=built.reply,
        cells=cell_mark(plan.window, plan.language_id),
        over=_time_is_over(asked.settings.time_budget_ms, trace),
        ended=stopped.append,
        unit=partial(indents.step, plan.window, plan.language_id),
    )
    parts, finish, usage = [], None, Usage()
    async with aclosing(stream):
        async for delta in stream:
            finish, usage = delta.finish or finish, delta.usage or usage
            if delta.text:
                parts.append(delta.text)
                on_text(delta.text)
    trace.count(usage)
    whole = "".join(parts)
    if stopped:
        trace.saved_tokens = max(0, plan.max_tokens - estimate(whole))
    if (finish is Finish.LENGTH or "Budget" in stopped) and "\n" in whole.strip():
        whole = whole.rpartition("\n")[0]  # the last line was cut somewhere inside
    begun = postprocess.begin(whole, _around(plan, built.blind))
    return RawCompletion(
        begun.text, finish, usage, built.blind, (*(f"stop:{name}" for name in stopped), *begun.filters)
    )


def begun(text: str, plan: Plan) -> str:
    """What the beginning of an answer, as it came so far, will be shown as."""
    return postprocess.begin(text, _around(plan, blind=False)).text


def nobody(text: str) -> None:
    """Who does not want to see an answer as it comes."""


def finished(raw: RawCompletion, plan: Plan, typed: int = 0) -> postprocess.Finished:
    """What is shown of an answer of which `typed` code points stand before the cursor already."""
    return postprocess.finish(raw.text, _around(plan, raw.blind), typed)


def _time_is_over(budget_ms: int, trace: RequestTrace) -> Callable[[], bool] | None:
    sent = trace.elapsed()
    return (lambda: trace.elapsed() - sent > budget_ms) if budget_ms else None


def _around(plan: Plan, blind: bool) -> postprocess.Around:
    return postprocess.Around(plan.window, UNMISTAKABLE, plan.language_id, blind, plan.automatic, plan.deleted)


def _request(built: Built, plan: Plan, asked: Asked) -> BackendRequest:
    return BackendRequest(
        built.prompt,
        plan.max_tokens + built.spare_tokens,
        asked.settings.temperature,
        built.stops,
        explicit=asked.context.trigger is Trigger.INVOKED,
        first_line=plan.extent is Extent.LINE,
    )


async def _watched(stream: Stream, trace: RequestTrace) -> Stream:
    async with aclosing(stream):
        async for delta in stream:
            trace.last_delta = trace.elapsed()
            if trace.first_delta is None:
                trace.first_delta = trace.last_delta
            yield delta
