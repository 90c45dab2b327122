"""Tasks through an engine, and what came of them. Knows neither the command line nor how an engine is made."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from completion.clock import SystemClock
from completion.engine import Engine
from completion.trace import TraceLog
from completion.types import CompletionContext, DocumentSnapshot, NoSuggestion, Outcome, PlainText, Reason, Trigger
from lsp_server.bench.programs import Verdict, run
from lsp_server.bench.tasks import Task

LANGUAGE = "python"
_FAILURES = frozenset({Reason.BACKEND_ERROR, Reason.BREAKER_OPEN, Reason.TIMEOUT, Reason.NO_BACKEND})
_PATIENCE = 3  # requests in a row that a backend may fail before the bench gives up


class BackendFailedError(Exception):
    """Nothing comes from the backend. The message is for the user."""


@dataclass(slots=True)
class Row:
    """What came of the tasks under one name. `passed` are task ids.

    `times` are ms from request to answer, where the model was asked.
    """

    name: str
    tasks: int = 0
    passed: list[str] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    silences: Counter[str] = field(default_factory=Counter)
    times: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of tasks whose program works: pass@1."""
        return len(self.passed) / self.tasks if self.tasks else 0.0

    @property
    def error(self) -> float:
        """Standard error of `share`, were the tasks drawn by chance."""
        return float((self.share * (1 - self.share) / self.tasks) ** 0.5) if self.tasks else 0.0

    @property
    def median_ms(self) -> float | None:
        return statistics.median(self.times) if self.times else None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tasks": self.tasks,
            "pass_at_1": self.share,
            "standard_error": self.error,
            "verdicts": dict(self.verdicts),
            "silences": dict(self.silences),
            "median_ms": self.median_ms,
            "passed": self.passed,
        }


class Checker:
    """Runs programs, the same one only once: most answers are equal in several rows."""

    def __init__(self) -> None:
        self._verdicts: dict[str, Verdict] = {}

    async def check(self, program: str) -> Verdict:
        if program not in self._verdicts:
            self._verdicts[program] = await asyncio.to_thread(run, program)
        return self._verdicts[program]


class Asker:
    """Asks one engine. `traces` must be the engine's own, writing to `lines`."""

    def __init__(self, engine: Engine, traces: TraceLog, lines: list[str], checker: Checker) -> None:
        self._engine = engine
        self._traces = traces
        self._lines = lines
        self._checker = checker

    async def row(self, name: str, tasks: Sequence[Task]) -> Row:
        """Raises BackendFailedError if the first requests in a row fail, or all do."""
        row = Row(name)
        failed = 0
        for task in tasks:
            outcome, record = await self._ask(task)
            row.tasks += 1
            if isinstance(outcome, NoSuggestion):
                row.silences[outcome.reason] += 1
                failed += outcome.reason in _FAILURES
                if failed == row.tasks and failed in (_PATIENCE, len(tasks)):
                    raise BackendFailedError(outcome.detail or outcome.reason)
                continue
            if record["cache"] == "miss":
                row.times.append(record["answered"])
            document = task.document
            verdict = await self._checker.check(
                task.program(document[: outcome.start] + outcome.text + document[outcome.end :])
            )
            row.verdicts[verdict] += 1
            if verdict is Verdict.PASSED:
                row.passed.append(task.task_id)
        return row

    async def _ask(self, task: Task) -> tuple[Outcome, dict[str, Any]]:
        """As if asked by hand in a file of its own. Also the trace's record."""
        uri = f"file:///bench/{task.task_id}/answer.py"
        document = DocumentSnapshot(uri, LANGUAGE, 0, PlainText(task.document), "answer.py")
        context = CompletionContext(document, len(task.prompt), Trigger.INVOKED)
        trace = self._traces.begin(task.task_id, uri)
        outcome = await self._engine.complete(context, trace)
        self._traces.finish(trace, outcome)
        self._engine.forget(uri)
        return outcome, json.loads(self._lines[-1])


def trace_log(lines: list[str]) -> TraceLog:
    return TraceLog(lines.append, clock=SystemClock())
