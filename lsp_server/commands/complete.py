"""`midfill complete`: one request through the same engine as in an editor."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.base import Backend, ErrorKind
from completion.clock import SystemClock
from completion.explain import Explained, explained, readable
from completion.privacy import Ignored, Policy
from completion.trace import TraceLog
from completion.types import Completion, CompletionContext, DocumentSnapshot, NoSuggestion, Outcome, Reason, Trigger
from lsp_server import cli, compose, fds, ipynb
from lsp_server.commands import _place
from lsp_server.commands._terminal import Terminal, note, tell
from lsp_server.ipynb_json import JsonNotebook
from lsp_server.settings import Settings, load

_CODES = {
    Reason.NO_BACKEND: cli.USAGE,
    Reason.BACKEND_ERROR: cli.BACKEND_FAILURE,
    Reason.BREAKER_OPEN: cli.BACKEND_FAILURE,
    Reason.TIMEOUT: cli.BACKEND_FAILURE,
}
_TIMES = ("debounced", "dispatched", "first_delta", "last_delta", "answered")


@dataclass(frozen=True, slots=True)
class _Answer:
    outcome: Outcome
    trace: Mapping[str, Any]
    explained: Explained | None


def command(arguments: argparse.Namespace) -> int:
    try:
        target = _place.parse_target(arguments.target)
        root = _place.root_of(target.path)
        texts = [(path, _place.read_text(path)) for path in (target.path, *arguments.open)]
        offset = _place.offset_of(texts[0][1], target)
    except _place.UsageError as error:
        return cli.fail(str(error))
    wanted = tuple(filter(None, arguments.backend.split(",")))
    settings, problems = load(arguments.config, [root], os.environ, None, backend=wanted)
    tell(problems)
    if wanted not in ((), settings.order):
        return cli.USAGE  # told above
    context = _context(texts, offset, root, Policy(settings.engine, SystemClock()).ignored)
    with fds.take_stdout() as out:
        terminal = Terminal(out, explain=arguments.explain)
        backends = compose.build_backends(settings, terminal)
        if not backends:
            return cli.USAGE
        answer = asyncio.run(_ask(settings, backends, context, terminal, stream=arguments.stream))
        return _show(arguments, context, answer, terminal)


def _context(texts: Sequence[tuple[Path, str]], offset: int, root: Path, ignored: Ignored) -> CompletionContext:
    """The first of `texts` as the file to complete, the others as files that are open beside it."""
    documents = [_place.snapshot(path, text, root, ignored) for path, text in texts]
    return CompletionContext(
        document=documents[0],
        offset=offset,
        trigger=Trigger.INVOKED,
        repo=root.name or None,
        others=tuple([ipynb.quoted(each, _notebook(each)) for each in documents[1:]]),
    )


def _notebook(document: DocumentSnapshot) -> JsonNotebook | None:
    return ipynb.parse(document.text) if ipynb.is_file(document.uri) else None


async def _ask(
    settings: Settings, backends: tuple[Backend, ...], context: CompletionContext, terminal: Terminal, *, stream: bool
) -> _Answer:
    lines: list[str] = []
    traces = TraceLog(lines.append, clock=SystemClock())
    async with AsyncExitStack() as stack:
        for backend in backends:
            await stack.enter_async_context(aclosing(backend))
        engine = await stack.enter_async_context(aclosing(compose.build_engine(settings, backends, traces, terminal)))
        for document in context.others:
            if why := engine.left_out(document):
                note(f"{document.path or document.uri} is not shown to the model: {why}")
        trace = traces.begin("1", context.document.uri)
        view = ipynb.view(context, _notebook(context.document))
        if isinstance(view, Reason):
            outcome: Outcome = NoSuggestion(view)
        else:
            outcome = view.outcome(await engine.complete(view.context, trace, _show_piece if stream else None))
        traces.finish(trace, outcome)
    if stream:
        _show_piece("\n")
    return _Answer(outcome, json.loads(lines[-1]), explained(trace))


def _show_piece(text: str) -> None:
    fds.say(text)


def _show(arguments: argparse.Namespace, context: CompletionContext, answer: _Answer, terminal: Terminal) -> int:
    outcome = answer.outcome
    if arguments.explain:
        _explain(answer)
    if arguments.json:
        terminal.result(json.dumps(_as_json(context, answer)))
    elif isinstance(outcome, Completion):
        terminal.result(outcome.text)
    if isinstance(outcome, NoSuggestion):
        detail = outcome.detail if not terminal.has_said(outcome.detail) else ""
        note(f"no suggestion: {outcome.reason}" + (f" ({detail})" if detail else ""))
        return _code(outcome, answer.trace["failures"])
    return cli.DONE


def _code(outcome: NoSuggestion, failures: Sequence[str]) -> int:
    """`failures` are "name:kind"; where only settings were wrong, so was the usage."""
    if failures and all(failure.endswith(f":{ErrorKind.SETTINGS.value}") for failure in failures):
        return cli.USAGE
    return _CODES.get(outcome.reason, cli.NO_SUGGESTION)


def _explain(answer: _Answer) -> None:
    trace = answer.trace

    def shown(*names: str, unit: str = "") -> str:
        return ", ".join(f"{name} {trace[name]}{unit}" for name in names if trace[name] is not None) or "unknown"

    note(f"prompt: {shown('shape', 'family')}")
    failures = f" (failed: {', '.join(trace['failures'])})" if trace["failures"] else ""
    note(f"backend: {trace['backend'] or 'none'}{failures}")
    note(f"tokens: {shown('prompt_tokens', 'reused_tokens', 'generated_tokens')}")
    note(f"times: {shown(*_TIMES, unit=' ms')}")
    note(f"{shown('reason', 'cache')}")
    if answer.explained is None:
        note("sent: nothing")
        return
    for line in readable(answer.explained):
        note(line)
    note("the prompt as it was formed, up to the next line of midfill:")
    fds.say(answer.explained.prompt.rstrip("\n") + "\n")
    note("end of the prompt")


def _as_json(context: CompletionContext, answer: _Answer) -> dict[str, Any]:
    """Places count from 1, as on the command line. `text` and `range` are null if there is no suggestion."""
    outcome = answer.outcome
    if isinstance(outcome, NoSuggestion):
        return {"text": None, "range": None, "reason": str(outcome.reason), "trace": answer.trace}
    text = context.document.text.slice(0, len(context.document.text))
    span = {"start": _place.place_of(text, outcome.start), "end": _place.place_of(text, outcome.end)}
    return {"text": outcome.text, "range": span, "reason": None, "trace": answer.trace}
