"""One client's session: its documents, settings, backend and engine, and what becomes of suggestions.

Must not know JSON-RPC methods. Imported once `initialize` was answered; the engine and the backends are imported later
still, when the settings are read.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from backends.base import BackendError
from completion.clock import SystemClock
from completion.learning import Learned, learned_file
from completion.trace import TraceLog
from completion.types import CompletionContext, NoSuggestion, Reason, Selected, Trigger
from lsp_server import compose
from lsp_server.convert import Suggestion, fitted
from lsp_server.documents import Document, Documents, Edit
from lsp_server.settings import Problem, Settings, load
from lsp_server.status import in_use
from lsp_server.tally import Tally
from lsp_server.uris import Root, to_path
from lsp_server.view import View

if TYPE_CHECKING:
    from backends.base import Backend
    from completion.engine import Engine
    from completion.trace import RequestTrace
    from completion.types import Outcome
    from lsp_server.client import Client
    from lsp_server.options import ServeOptions

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REPLACE_S = 1.0  # seconds between two changes of backends
_PAUSE_S = 0.3  # without a key and without a request until a prompt is evaluated ahead
_CLOSE_S = 2.0  # an engine or backend that takes longer to close is left behind
MOST_CANDIDATES = 8  # an editor can go through that many
OTHER_DOCUMENTS = 200  # open documents shown to the engine besides the current one


@dataclass(frozen=True, slots=True)
class Asked:
    """A completion request in client units: positions are (line, column).

    `chosen` is the entry of the editor's popup menu, its text and the start and end of what it would replace.
    """

    request_id: str
    received: float  # seconds of time.perf_counter
    uri: str
    position: tuple[int, int]
    invoked: bool = False
    chosen: tuple[str, tuple[int, int], tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class _Setup:
    """What one reading of the settings led to."""

    settings: Settings
    backends: tuple[Backend, ...]
    engine: Engine
    warms: bool  # one of the backends may evaluate prompts ahead, on this machine


class Session:
    def __init__(
        self, options: ServeOptions, client: Client, roots: Iterable[Root], client_settings: Mapping[str, Any]
    ) -> None:
        self.client = client
        self.client_settings = client_settings  # as JSON; what `reload` reads
        self.documents = Documents(client.capabilities.encoding)
        self.documents.set_roots(roots)
        self.enabled = True
        self.tally = Tally(Learned(learned_file()))
        self._options = options
        self._setup: _Setup | None = None
        self._ready = asyncio.Event()  # requests wait for it
        self._due: asyncio.Handle | None = None  # the settings are about to be read
        self._replaced = float("-inf")  # when backends were last replaced, seconds of the loop's clock
        self._told: set[Problem] = set()
        self._warm: asyncio.TimerHandle | None = None  # a prompt is about to be evaluated ahead
        self._tasks: set[asyncio.Task[None]] = set()
        self._traces: TraceLog | None = None
        self._on_close = ExitStack()
        self._on_close.callback(self.tally.learned.save)

    # Settings ---------------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings | None:
        return self._setup.settings if self._setup else None

    @property
    def backends(self) -> tuple[Backend, ...]:
        return self._setup.backends if self._setup else ()

    @property
    def started(self) -> bool:
        return self._ready.is_set()

    async def until_started(self) -> None:
        await self._ready.wait()

    def reload(self) -> None:
        """Read the settings anew; engine and backends are replaced as far as their settings changed.

        That is done before any request that comes later is begun, and once for many calls in a row: a client may send
        its settings at every key of its settings page.
        """
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._reload_now)

    def _reload_now(self) -> None:
        self._due = None
        try:
            self._reload()
        except Exception:
            logger.exception("bug while reading settings")
            self.client.notice("start", "internal error while starting; the server's log says more")
        if self._due is None:
            self._ready.set()

    def _reload(self) -> None:
        roots = [Path(path) for root in self.documents.roots if (path := to_path(root.uri)) is not None]
        settings, problems = load(self._options.config_file, roots, os.environ, self.client_settings)
        for problem in problems:  # before what follows from them
            if problem not in self._told:
                self._told.add(problem)
                self.client.notice(f"setting {problem}", str(problem))
        old = self._setup
        if old is None or _backends_of(old.settings) != _backends_of(settings):
            self._replace_soon(settings)
        elif old.settings.engine != settings.engine:
            self._setup = self._built(settings, old.backends)
            self.spawn(_close(old.engine))
        else:
            self._setup = _Setup(settings, old.backends, old.engine, old.warms)

    def _replace_soon(self, settings: Settings) -> None:
        """At most once in `_REPLACE_S`: a local model takes seconds to load. Requests wait, they are not lost."""
        loop = asyncio.get_running_loop()
        rest = self._replaced + _REPLACE_S - loop.time()
        if self._setup is None or rest <= 0:
            self._replace(settings)
        else:
            self._ready.clear()
            self._due = loop.call_later(rest, self._reload_now)

    def _replace(self, settings: Settings) -> None:
        """Other backends, and an engine for them."""
        old = self._setup
        if old is not None:
            self._replaced = asyncio.get_running_loop().time()
            self.client.forget_notices()
            self.spawn(_close(old.engine, old.backends))
        backends = compose.build_backends(settings, self.client)
        self._setup = self._built(settings, backends)
        if backends:
            self.spawn(self._prepare(backends, settings))

    def _built(self, settings: Settings, backends: tuple[Backend, ...]) -> _Setup:
        engine = compose.build_engine(settings, backends, self.traces, self.client, self.tally.learned)
        return _Setup(settings, backends, engine, not all(each.capabilities.remote for each in backends))

    async def _prepare(self, backends: tuple[Backend, ...], settings: Settings) -> None:
        """Load the model before the first keystroke needs it: the first one's that can be, with hedging all."""
        engine = settings.engine
        if not any(each.enabled for each in (engine.completion, *engine.languages.values())):
            return
        allowed = [backend for backend in backends if not compose.refusal(backend, settings)]
        if not allowed:
            self.client.notice("privacy", compose.refusal(backends[0], settings))
        for backend in allowed:
            if backend.capabilities.remote and backend is not allowed[0] and not engine.hedge_ms:
                continue  # its turn may never come: no key is read, no connection made
            try:
                await backend.prepare()
            except BackendError as error:
                if self.backends is backends:
                    # the engine's key: the first request would say the same
                    self.client.notice(f"backend:{backend.name}:{error.kind.value}", error.message)
            else:
                self.client.log(f"backend {backend.name} is ready, model {backend.model or 'unknown'}")
                if (viewed := next(iter(self.documents), None)) is not None:
                    self.warm_soon(viewed.uri)
                if not engine.hedge_ms:
                    return

    # Requests ---------------------------------------------------------------------------------------------------------

    @property
    def traces(self) -> TraceLog:
        if self._traces is None:
            self._traces = TraceLog(self._trace_writer(), clock=SystemClock(), text=self._options.trace_text)
        return self._traces

    def _trace_writer(self) -> Callable[[str], object] | None:
        """Append whole lines to the trace file, if there is to be one."""
        path = self._options.trace_file
        if path is None:
            return None
        try:
            file = path.open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            self.client.notice("trace", f"the trace cannot be written: {error}")
            return None
        self._on_close.callback(file.close)
        return file.write

    def complete(
        self, asked: Asked, render: Callable[[Suggestion | None], T], answer: Callable[[T], None]
    ) -> asyncio.Future[T] | T:
        """Complete the document as it is at this moment. Cancelling the future stops the work.

        `answer` is called with what the future will give, as soon as it is known.
        """
        if self._warm is not None:
            self._warm.cancel()
        trace = self.traces.begin(asked.request_id, asked.uri, asked.received)
        view = self._view(asked)
        if isinstance(view, Reason) or not self.enabled:
            reason = view if isinstance(view, Reason) else Reason.DISABLED
            self.traces.finish(trace, NoSuggestion(reason))
            return render(None)

        async def work(view: View) -> T:
            outcome, suggestion = await self._complete(view, trace)
            result = render(suggestion)
            answer(result)
            self.traces.finish(trace, outcome)  # after it: `answered` means sent
            return result

        def done(task: asyncio.Future[T]) -> None:
            if task.cancelled():
                self.traces.finish(trace, NoSuggestion(Reason.CANCELLED))
            elif task.exception() is not None:
                self.traces.finish(trace, NoSuggestion(Reason.BACKEND_ERROR, "internal error"))

        task = asyncio.ensure_future(work(view))
        task.add_done_callback(done)
        return task

    def _view(self, asked: Asked) -> View | Reason:
        self.documents.touch(asked.uri)
        document = self.documents.get(asked.uri)
        if document is None:
            return Reason.NOT_OPEN
        lines, encoding = document.lines, self.documents.encoding
        trigger = Trigger.INVOKED if asked.invoked else Trigger.AUTOMATIC
        offset = lines.offset_at(*asked.position, encoding)
        selected = None
        if asked.chosen is not None:
            text, start, end = asked.chosen
            selected = Selected(text, lines.offset_at(*start, encoding), lines.offset_at(*end, encoding))
        others = self.documents.others(asked.uri, OTHER_DOCUMENTS)
        gap, taken = document.deleted or (-1, "")
        context = CompletionContext(
            document.snapshot(),
            offset,
            trigger,
            selected,
            document.repo,
            others,
            asked.received,
            taken if gap == offset else "",
            MOST_CANDIDATES,
        )
        return document.view(context)

    async def _complete(self, view: View, trace: RequestTrace) -> tuple[Outcome, Suggestion | None]:
        await self.until_started()
        if self._setup is None:
            return NoSuggestion(Reason.NO_BACKEND, "the server did not start"), None
        return self._fitted(view, view.outcome(await self._setup.engine.complete(view.context, trace)))

    def _fitted(self, view: View, outcome: Outcome) -> tuple[Outcome, Suggestion | None]:
        if isinstance(outcome, NoSuggestion):
            return outcome, None
        document = self.documents.get(view.asked.document.uri)
        if document is None:
            return NoSuggestion(Reason.STALE, "the document was closed"), None
        asked, encoding = view.asked.document.text, self.documents.encoding
        suggestion = fitted(outcome, view.asked.offset, asked, document.lines, encoding)
        if suggestion is None:
            return NoSuggestion(Reason.STALE), None
        language = view.context.document.language_id
        learns = self.settings is not None and self.settings.engine.for_language(language).learning
        for each in (suggestion, *suggestion.others):
            self.tally.offered(each.id, language if learns else "")
        return outcome, suggestion

    def warm_soon(self, uri: str, edit: Edit | None = None) -> None:
        """The user is at `edit` of this document, or somewhere in it: a pause is used to evaluate its prompt."""
        if self._setup is None or not self._setup.warms:
            return  # the next key is not to pay for what will not be done
        if self._warm is not None:
            self._warm.cancel()
        self._warm = asyncio.get_running_loop().call_later(_PAUSE_S, self._warm_now, uri, edit)

    def _warm_now(self, uri: str, edit: Edit | None) -> None:
        if self._setup is None or not self.enabled or (document := self.documents.get(uri)) is None:
            return
        guessed = edit is None or edit.range is None
        position = (document.lines.line_count, 0) if edit is None else edit.end(self.documents.encoding)
        view = self._view(Asked("", 0.0, uri, position))
        if isinstance(view, View):
            self._setup.engine.warm(view.context, guessed=guessed)

    def edited(self, document: Document) -> None:
        """What is on its way for a document may fit no longer. Of others than plain ones the engine knows a part."""
        if self._setup is not None and type(document) is Document:
            self._setup.engine.edited(document.uri, document.snapshot)

    def closed(self, uri: str) -> None:
        document = self.documents.close(uri)
        self.forget(document.names if document else (uri,))

    def forget(self, names: Iterable[str]) -> None:
        """Keep nothing more of documents that were asked by these URIs."""
        if self._setup is not None:
            for name in names:
                self._setup.engine.forget(name)

    def saved(self, uri: str) -> None:
        if self._setup is not None:
            self._setup.engine.saved(uri)

    def clear_cache(self) -> None:
        if self._setup is not None:
            self._setup.engine.clear_cache()

    def status(self) -> dict[str, Any]:
        """Counts and what is in use, as JSON. Holds no secret and no source text."""
        return {
            "enabled": self.enabled,
            **in_use(self.settings, self.backends),
            "documents": len(self.documents),
            "counts": dict(self.traces.counts),
            **self.tally.counts(),
        }

    def explain(self, uri: str | None, most: int) -> list[dict[str, Any]]:
        """The last requests, newest first, of one document or of all, with what was sent as far as it is remembered."""
        from lsp_server.explaining import explain  # on demand

        last = self.traces.last(uri) if uri is not None else None
        found = list(self.traces.recent)[::-1][:most] if uri is None else [last] if last else []
        documents = [document.snapshot() for document in self.documents]
        return explain(found, documents, self._setup.engine if self._setup is not None else None)

    # Life -------------------------------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run in the background until done or until the session ends."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("bug in the background", exc_info=error)

    async def aclose(self) -> None:
        for due in (self._due, self._warm):
            if due is not None:
                due.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        if self._setup is not None:
            await _close(self._setup.engine, self._setup.backends)
        self._on_close.close()


def _backends_of(settings: Settings) -> object:
    """What the backends are built from."""
    return [(name, settings.backends[name]) for name in settings.order]


async def _close(engine: Engine, backends: Iterable[Backend] = ()) -> None:
    """Close in this order: requests in flight end before their connections do."""
    with suppress(TimeoutError):
        await asyncio.wait_for(engine.aclose(), _CLOSE_S)
    for backend in backends:
        with suppress(TimeoutError):
            await asyncio.wait_for(backend.aclose(), _CLOSE_S)
