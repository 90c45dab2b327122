"""One backend with all it takes to ask it: its prompts, its windows. Must not know which backend is asked when."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from backends.base import Backend, BackendError, BackendRequest, ErrorKind, Finish, Shape, Usage
from completion import postprocess
from completion.cells import cell_mark
from completion.multiline import Extent
from completion.plan import Plan, Planner, shape_of, shown
from completion.prompt import Built
from completion.prompt.families import UNMISTAKABLE
from completion.settings import CompletionSettings
from completion.stopping import Stream, stop_early
from completion.trace import RequestTrace
from completion.types import CompletionContext, RawCompletion, Trigger

OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, planned for one route."""

    context: CompletionContext
    settings: CompletionSettings
    plan: Plan


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
        self._planner = planner

    @property
    def name(self) -> str:
        return self.backend.name

    def plan(self, context: CompletionContext, settings: CompletionSettings) -> Plan:
        return self._planner.plan(context, settings, self.backend.capabilities)

    def forget(self, uri: str) -> None:
        self._planner.forget(uri)

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
                raw = await self._stream(request, built, plan, asked, trace, on_text)
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

    async def _stream(
        self,
        request: BackendRequest,
        built: Built,
        plan: Plan,
        asked: Asked,
        trace: RequestTrace,
        on_text: OnText,
    ) -> RawCompletion:
        trace.dispatched = trace.elapsed()
        trace.shape, trace.family = shape_of(request.prompt).value, built.family
        trace.files, trace.pieces = tuple(file.path for file in plan.extra), plan.pieces
        trace.prompt = shown(request.prompt) if trace.text else None
        stream = stop_early(
            _watched(self.backend.stream(request), trace),
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
        if finish is Finish.LENGTH and "\n" in whole.strip():
            whole = whole.rpartition("\n")[0]  # the last line was cut somewhere inside
        begun = postprocess.begin(whole, _around(plan, built.blind))
        return RawCompletion(begun.text, finish, usage, built.blind, begun.filters)


def finished(raw: RawCompletion, plan: Plan, typed: int = 0) -> postprocess.Finished:
    """What is shown of an answer of which `typed` code points stand before the cursor already."""
    return postprocess.finish(raw.text, _around(plan, raw.blind), typed)


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
