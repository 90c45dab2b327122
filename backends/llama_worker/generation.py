"""One request: evaluate what is new of the prompt, then write. Knows no protocol."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llama_worker import judging
from backends.llama_worker.answer import AnswerText
from backends.llama_worker.context import Context
from backends.llama_worker.errors import WorkerError
from backends.llama_worker.layout import Layout, Prompt, fit, infill_layout, raw_layout
from backends.llama_worker.sampling import Sampler
from backends.llama_worker.sequences import Held, Sequences
from backends.llama_worker.writing import Texts, Writer, Writing

OTHER_TEMPERATURE = 0.7  # at least, of answers beside the first: greedy ones would all be the same
JUDGE_S = 1.0  # what judging may add to a request; seconds
_JUDGE_ROWS = judging.ANSWERS * (judging.SEEN + 16)  # what it evaluates, in tokens


@dataclass(slots=True)
class Report:
    """How a request went. `finish` is "stop", "length" or "cancelled"."""

    prompt: Sequence[int] = ()
    reused: int = 0
    held: int = 0  # tokens of the prompt's sequence
    generated: int = 0  # tokens of the answers; those that only repeat what was taken off the prompt belong to that
    finish: str = "cancelled"


@dataclass(frozen=True, slots=True)
class _Task:
    """What is the same for all of a request."""

    context: Context
    sequences: Sequences
    request: Mapping[str, Any]
    report: Report
    required: bytes
    limit: int  # tokens of one answer


def generate(context: Context, sequences: Sequences, request: Mapping[str, Any], report: Report) -> Iterator[Texts]:
    """Fill in `report`, and yield after each batch what it added: nothing while the prompt is evaluated.

    Between two steps other requests may compute. Ends early when aborted. Raises WorkerError.
    """
    layout = _layout(context, request)
    required = layout.required
    # A prompt that fills the context leaves no room for an answer; an answer takes half of it at most.
    limit = max(0, min(request["max_tokens"], context.size // 2))
    room = max(1, context.size - max(1, limit) - min(len(required), context.size // 4))
    prompt = fit(layout.segments, room)
    report.prompt = prompt.tokens
    task = _Task(context, sequences, request, report, required, limit)
    held = sequences.take(prompt, exact=not limit)  # nobody waits for a prompt without an answer
    report.reused, report.held = held.reused, len(held.tokens)
    try:
        for _ in (steps := _Steps(sequences.evaluate(held, prompt))):
            report.held = len(held.tokens)
            yield ()
        if steps.result and not limit:
            report.finish = "length"  # the prompt was all that was wanted
        elif steps.result:
            yield from _judged(task, held, prompt) if _judges(task) else _written(task, held)
    finally:
        report.held = len(held.tokens)
        sequences.release(held)


class _Steps:
    """Iterates over a generator and keeps what it returns."""

    def __init__(self, generator: Generator[None, None, bool]) -> None:
        self._generator = generator
        self.result = False

    def __iter__(self) -> Iterator[None]:
        self.result = yield from self._generator


def _written(task: _Task, held: Held) -> Iterator[Texts]:
    writing, writers = _begin(task, held, task.request.get("candidates", 1))
    try:
        while True:
            texts = writing.pick()  # before others compute: the logits are of the last batch
            _count(task.report, writers, done=writing.done)
            yield texts
            if writing.done or not writing.extend():
                return
    finally:
        writing.close()


def _judged(task: _Task, held: Held, prompt: Prompt) -> Iterator[Texts]:
    """Nothing is told before the best answer is known."""
    writing, writers = _begin(task, held, judging.ANSWERS, judged=True)
    try:
        while True:
            writing.pick()
            _count(task.report, writers, done=False)
            if writing.done:
                break
            yield ()
            if not writing.extend():
                return
        suffix, required = _suffix(task.request), len(task.required)
        best = judging.best(task.context, task.sequences, writers, prompt.tokens, required, suffix)
        if best is not None:
            task.report.finish = best.finish
            if best.held is not None:  # so that it costs nothing to accept it
                task.sequences.adopt(held, best.held, best.evaluated)
            yield [(0, best.text)]
    finally:
        writing.close()


def _begin(task: _Task, held: Held, count: int, *, judged: bool = False) -> tuple[Writing, list[Writer]]:
    request, writers = task.request, []
    for index in range(count):
        temperature, parameters = request["temperature"], dict(request["parameters"])
        if index:
            temperature = max(temperature, OTHER_TEMPERATURE)
            parameters["seed"] = (parameters.get("seed") or 0) + index
        sampler = Sampler(task.context.library.api, temperature, parameters)
        answer = AnswerText(request["stop"], first_line=request.get("first_line", False))
        writers.append(Writer(index, sampler, task.required, answer))
    return Writing(task.context, task.sequences, held, writers, task.limit, judged=judged), writers


def _count(report: Report, writers: Sequence[Writer], *, done: bool) -> None:
    report.generated = sum(writer.written for writer in writers)
    if done:
        report.finish = writers[0].finish


def _judges(task: _Task) -> bool:
    """Whether there is something to judge by, and the time for it."""
    request, context = task.request, task.context
    asked = request["parameters"].get("judge")
    if not request.get("first_line") or request.get("candidates", 1) > 1 or context.whole or asked is False:
        return False
    if not _suffix(request).strip():
        return False
    return bool(asked) or context.speed * JUDGE_S >= _JUDGE_ROWS


def _suffix(request: Mapping[str, Any]) -> str:
    """What follows the hole and does not stand in the prompt."""
    prompt = request["prompt"]
    return str(prompt.get("suffix") or "") if prompt["kind"] == "raw" else ""


def _layout(context: Context, request: Mapping[str, Any]) -> Layout:
    vocabulary, prompt, heal = context.vocabulary, request["prompt"], request["parameters"].get("heal", True)
    if prompt["kind"] == "raw":
        return raw_layout(prompt, vocabulary, heal=heal)
    if not vocabulary.fim.infill:
        raise WorkerError("infill-unsupported", "This model's vocabulary has no infill tokens.")
    return infill_layout(prompt, vocabulary, heal=heal)
