"""HumanEval infilling through the whole engine: how many holes are filled so that the program's test passes.

One answer per hole, greedy. With a local model the engine is measured again with parts of it switched off.

THE ANSWERS ARE RUN: each program, with what the model wrote in it, is a process of yours, with limits of time and
memory but without a sandbox. Run this where you would run code of strangers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from backends.base import BackendError
from completion.settings import CompletionSettings
from lsp_server import cli, compose, fds
from lsp_server.bench import filters, tasks
from lsp_server.bench.alone import own_worker
from lsp_server.bench.passing import LANGUAGE, Asker, BackendFailedError, Checker, Row, trace_log
from lsp_server.bench.switched import Notices, switched, unknown
from lsp_server.bench.table import number, table
from lsp_server.bench.tasks import Task
from lsp_server.commands._terminal import Terminal, note, tell
from lsp_server.settings import Settings, load

HELP = "share of HumanEval's holes filled so that the program works; runs what the model writes"
WHOLE = "whole engine"
# The local engine judges by what follows where the machine is fast enough; here always, lest the figures depend on it.
ALL_ON: Mapping[str, Any] = {"judge": True}
SWITCHES: Mapping[str, Mapping[str, Any]] = {
    "without suffix judging": {"judge": False},
    "without token healing": {"judge": True, "heal": False},
    "without both": {"judge": False, "heal": False},
}
_TIMEOUT_S = 600.0  # a busy machine is no fault of a model's
_NO_STEPS: Mapping[str, bool] = MappingProxyType({})
_MULTILINE: Mapping[str, str] = {"single-line": "never", "multi-line": "always", "random-span": "auto"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", choices=tuple(tasks.FILES), default="single-line", help="single-line if not given")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="N tasks, spread over the file; 0: all")
    parser.add_argument(
        "--data",
        default=os.environ.get(tasks.VARIABLE, ""),
        metavar="FILE",
        help=f"the tasks, or the folder they are in; ${tasks.VARIABLE} if not given",
    )
    parser.add_argument("--backend", metavar="NAME[,NAME]", default="", help="ask these entries of the settings")
    parser.add_argument("--whole-only", action="store_true", help="no rows with parts of the local engine switched off")
    parser.add_argument("--each-filter", action="store_true", help="a row with each filter of answers switched off")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read this file instead of the user's config.toml")


def command(arguments: argparse.Namespace) -> int:
    try:
        path = tasks.find(arguments.task, arguments.data)
        every = tasks.read(path)
    except tasks.DataError as error:
        return cli.fail(str(error))
    wanted = tuple(filter(None, arguments.backend.split(",")))
    settings, problems = load(arguments.config, [], os.environ, None, backend=wanted)
    tell(problems)
    if wanted not in ((), settings.order):
        return cli.USAGE  # told above
    chosen = tasks.spread(every, arguments.limit)
    bench = _Bench(_fixed(settings, arguments.task, len(chosen)), chosen)
    with fds.take_stdout() as out, own_worker():
        terminal = Terminal(out)
        if not compose.build_backends(settings, terminal):  # told
            return cli.USAGE
        try:
            asyncio.run(bench.run(out, {} if arguments.whole_only else SWITCHES, each_filter=arguments.each_filter))
        except (BackendFailedError, BackendError) as error:
            note(str(error))
            return cli.BACKEND_FAILURE
        about = {"task": arguments.task, "file": path.name, "tasks": len(chosen), "of": len(every)}
        terminal.result(json.dumps(about | bench.as_json()) if arguments.json else _shown(about, bench))
    return cli.DONE


def _fixed(settings: Settings, task: str, count: int) -> Settings:
    """Greedy, at once, no hurry, every answer kept for the rows that filter it anew; the rest as the user has it."""
    completion = replace(
        settings.engine.for_language(LANGUAGE),
        enabled=True,
        temperature=0.0,
        debounce_ms=0,
        time_budget_ms=0,
        multiline=_MULTILINE[task],
        cache_entries=max(count, CompletionSettings().cache_entries),
    )
    languages: Mapping[str, CompletionSettings] = MappingProxyType({})
    backends = {
        name: replace(entry, timeout_s=max(entry.timeout_s, _TIMEOUT_S)) for name, entry in settings.backends.items()
    }
    return replace(
        settings,
        engine=replace(settings.engine, completion=completion, languages=languages),
        backends=MappingProxyType(backends),
    )


class _Bench:
    def __init__(self, settings: Settings, chosen: Sequence[Task]) -> None:
        self._settings = settings
        self._tasks = chosen
        self._checker = Checker()
        self.backend = self.model = ""
        self.rows: list[Row] = []
        self.left_out: dict[str, str] = {}

    async def run(self, out: BinaryIO, switches: Mapping[str, Mapping[str, Any]], *, each_filter: bool) -> None:
        """Raises BackendFailedError, BackendError."""
        steps = filters.each() if each_filter else {}
        await self._engine(WHOLE, switched(self._settings, ALL_ON) or self._settings, Terminal(out), steps)
        for name, parameters in switches.items():
            settings = switched(self._settings, parameters)
            if settings is None:
                continue
            if not await self._engine(name, settings, Notices(out)):
                self.left_out[name] = unknown(parameters)

    async def _engine(
        self, name: str, settings: Settings, terminal: Terminal, steps: Mapping[str, bool] = _NO_STEPS
    ) -> bool:
        """Add the rows of one engine; False if it does not know a parameter."""
        async with AsyncExitStack() as stack:
            backends = compose.build_backends(settings, terminal)
            for backend in backends:
                await stack.enter_async_context(aclosing(backend))
            await backends[0].prepare()
            if isinstance(terminal, Notices) and terminal.unknown:
                return False
            self.backend, self.model = backends[0].name, backends[0].model
            lines: list[str] = []
            traces = trace_log(lines)
            engine = await stack.enter_async_context(
                aclosing(compose.build_engine(settings, backends, traces, terminal))
            )
            asker = Asker(engine, traces, lines, self._checker)
            await self._row(asker, name)
            # Those that run when an answer is taken from the cache come first: the model need not write again.
            for step, before_cache in sorted(steps.items(), key=itemgetter(1)):
                if before_cache:
                    engine.clear_cache()
                with filters.without(step):
                    await self._row(asker, f"without {step}")
        return True

    async def _row(self, asker: Asker, name: str) -> None:
        row = await asker.row(name, self._tasks)
        note(f"{name}: {row.share:.1%}")  # rows take minutes
        self.rows.append(row)

    def as_json(self) -> dict[str, Any]:
        rows = [row.as_json() for row in self.rows]
        return {"backend": self.backend, "model": self.model, "rows": rows, "left_out": self.left_out}


def _shown(about: Mapping[str, Any], bench: _Bench) -> str:
    heads = ("", "pass@1", "±", "passed", "wrong", "timed out", "silent", "median ms")
    rows = [
        (
            row.name,
            f"{row.share:.1%}",
            f"{row.error:.1%}",
            str(len(row.passed)),
            str(row.verdicts["failed"]),
            str(row.verdicts["timed-out"]),
            str(row.silences.total()),
            number(row.median_ms, 0),
        )
        for row in bench.rows
    ]
    head = f"{about['file']}: {about['tasks']} of {about['of']} tasks, backend {bench.backend} ({bench.model}), greedy"
    silences = [
        f"silent, {row.name}: {', '.join(f'{reason} {count}' for reason, count in row.silences.most_common())}"
        for row in bench.rows
        if row.silences
    ]
    left_out = [f"left out: {name}: {why}" for name, why in bench.left_out.items()]
    return "\n".join((head, table(heads, rows), *silences, *left_out))
