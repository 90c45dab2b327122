"""Small places in code, half of which call for a suggestion and half for silence, through the whole engine.

What models write there is written down with the scenarios, good and bad, with what a family leaves behind its answers:
so no model is needed. The score is the harmonic mean of the show rate (suggestions that came where one must come) and
the quiet rate (silence where silence is right).
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backends.base import BackendRequest, Capabilities, Delta, Finish, Shape
from backends.scripted import ScriptedBackend
from backends.settings import BackendSettings
from completion.clock import SystemClock
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import SHOWN, TraceLog
from completion.types import Completion, CompletionContext, DocumentSnapshot, PlainText, Trigger
from lsp_server import cli, fds
from lsp_server.bench.scenario_files import CHAT, Answer, Scenario, ScenarioError, read_all
from lsp_server.bench.table import table
from lsp_server.commands._terminal import Terminal

HELP = "where suggestions must come and where not: show rate, quiet rate, exactness; needs no model"
SHOULD_SHOW = "a suggestion must come"
GOALS = {"show": 0.90, "quiet": 0.90, "exact": 0.95}
_DELTA = 3  # code points: many special tokens and line ends are split


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one answer. `reason` is "shown" or why not; `text` what was shown; `exact`: just as it should be."""

    scenario: Scenario
    answer: Answer
    reason: str
    text: str
    exact: bool

    @property
    def shown(self) -> bool:
        return self.reason == SHOWN

    @property
    def right(self) -> bool:
        return not self.shown if self.scenario.quiet else self.exact


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of answers; None where there was none."""

    show: float | None
    quiet: float | None
    exact: float | None  # of what was shown where a suggestion must come

    @property
    def score(self) -> float | None:
        """Harmonic mean of show and quiet rate."""
        if self.show is None or self.quiet is None:
            return None
        return 2 * self.show * self.quiet / (self.show + self.quiet) if self.show + self.quiet else 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose language, name or group holds TEXT")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(config=None)  # no settings are read: the figures are those of the defaults


def command(arguments: argparse.Namespace) -> int:
    try:
        scenarios = [scenario for scenario in read_all() if _holds(scenario, arguments.only)]
    except ScenarioError as error:
        return cli.fail(str(error))
    if not scenarios:
        return cli.fail(f"no scenario's language, name or group holds {arguments.only!r}")
    with fds.take_stdout() as out:
        results = asyncio.run(run(scenarios))
        Terminal(out).result(json.dumps(as_json(results)) if arguments.json else shown(results))
    return cli.DONE


def _holds(scenario: Scenario, wanted: str) -> bool:
    return wanted.lower() in f"{scenario.id}: {scenario.quiet or SHOULD_SHOW}".lower()


async def run(scenarios: Sequence[Scenario]) -> list[Result]:
    """Every answer of every scenario, each as the first request of an engine of its own."""
    return [await ask(scenario, answer) for scenario in scenarios for answer in scenario.answers]


async def ask(scenario: Scenario, answer: Answer) -> Result:
    chat = answer.family == CHAT
    backend = ScriptedBackend(
        "scenario",
        BackendSettings(kind="scripted", model=answer.family),
        script=lambda request: _deltas(answer, request),
        capabilities=Capabilities(frozenset({Shape.CHAT if chat else Shape.RAW}), remote=False),
    )
    traces = TraceLog(None, clock=SystemClock())
    settings = EngineSettings(completion=CompletionSettings(debounce_ms=0))
    families = {} if chat else {backend.name: answer.family}
    engine = Engine([backend], settings, traces=traces, families=families)
    uri = f"file:///scenario/{scenario.path}"
    document = DocumentSnapshot(uri, scenario.language, 2, PlainText(scenario.text), scenario.path)
    context = CompletionContext(
        document,
        scenario.offset,
        Trigger.INVOKED if scenario.invoked else Trigger.AUTOMATIC,
        repo="scenario",
        deleted=scenario.deleted,
    )
    trace = traces.begin(scenario.id, uri)
    outcome = await engine.complete(context, trace)
    traces.finish(trace, outcome)
    await engine.aclose()
    if not isinstance(outcome, Completion):
        return Result(scenario, answer, trace.reason, "", exact=False)
    became = scenario.text[: outcome.start] + outcome.text + scenario.text[outcome.end :]
    return Result(scenario, answer, trace.reason, outcome.text, exact=became in scenario.results)


def _deltas(answer: Answer, request: BackendRequest) -> list[Delta]:
    """The answer in small parts; as services do, not beyond a stop string or the number of tokens asked for."""
    text = answer.text
    cut = min((at for at in map(text.find, request.stop) if at >= 0), default=len(text))
    parts = [text[at : min(at + _DELTA, cut)] for at in range(0, cut, _DELTA)]
    if len(parts) > request.max_tokens:
        return [*map(Delta, parts[: request.max_tokens]), Delta("", Finish.LENGTH)]
    return [*map(Delta, parts), Delta("", Finish.STOP)]


def score(results: Sequence[Result]) -> Score:
    wanted = [result for result in results if not result.scenario.quiet]
    unwanted = [result for result in results if result.scenario.quiet]
    came = [result for result in wanted if result.shown]
    return Score(
        show=_share(len(came), len(wanted)),
        quiet=_share(sum(not result.shown for result in unwanted), len(unwanted)),
        exact=_share(sum(result.exact for result in came), len(came)),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def by_group(results: Sequence[Result]) -> dict[str, Counter[str]]:
    """For each group of scenarios how often a suggestion came, and how often which reason silenced it."""
    groups: dict[str, Counter[str]] = {}
    for result in results:
        groups.setdefault(result.scenario.quiet or SHOULD_SHOW, Counter())[result.reason] += 1
    return groups


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    total = score(results)
    return {
        "scenarios": len({result.scenario.id for result in results}),
        "answers": len(results),
        "score": total.score,
        "show": total.show,
        "quiet": total.quiet,
        "exact": total.exact,
        "goals": GOALS,
        "reasons": {group: dict(counts) for group, counts in by_group(results).items()},
        "wrong": [
            {
                "scenario": result.scenario.id,
                "group": result.scenario.quiet or SHOULD_SHOW,
                "family": result.answer.family,
                "reason": result.reason,
                "shown": result.text,
            }
            for result in results
            if not result.right
        ],
    }


def shown(results: Sequence[Result]) -> str:
    """Three parts: rates by language, reasons by group, and what went wrong."""
    parts = [_rates(results), _reasons(results)]
    wrong = [result for result in results if not result.right]
    if wrong:
        heads = ("wrong", "family", "reason", "shown")
        rows = [(each.scenario.id, each.answer.family, each.reason, _excerpt(each.text)) for each in wrong]
        parts.append(table(heads, rows, left=(0, 1, 2, 3)))
    return "\n\n".join(parts)


def _excerpt(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1][:60]


def _rates(results: Sequence[Result]) -> str:
    heads = ("language", "scenarios", "answers", "show", "exact", "quiet", "score")
    languages = list(dict.fromkeys(result.scenario.language for result in results))
    rows = [_rate(name, [each for each in results if each.scenario.language == name]) for name in languages]
    goals = ("goal", "", "", *(f"{GOALS[name]:.0%}" for name in ("show", "exact", "quiet")), "")
    return table(heads, [*rows, _rate("all", results), goals])


def _rate(name: str, results: Sequence[Result]) -> tuple[str, ...]:
    found = score(results)
    shares = (found.show, found.exact, found.quiet, found.score)
    count = len({result.scenario.id for result in results})
    return (name, str(count), str(len(results)), *("-" if each is None else f"{each:.1%}" for each in shares))


def _reasons(results: Sequence[Result]) -> str:
    groups = by_group(results)
    total: Counter[str] = sum(groups.values(), Counter())
    reasons = [reason for reason, _ in total.most_common()]
    rows = [(group, *(str(counts[reason] or "") for reason in reasons)) for group, counts in groups.items()]
    return table(("answers where", *reasons), rows)
