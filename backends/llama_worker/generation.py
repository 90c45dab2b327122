"""One request: evaluate what is new of the prompt, then token by token. Knows no protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llama_worker.errors import WorkerError
from backends.llama_worker.layout import Layout, fit, infill_layout, raw_layout
from backends.llama_worker.library import BATCH, Context
from backends.llama_worker.sampling import AnswerText, Requirement, Sampler


@dataclass(slots=True)
class Report:
    """How a request went. `finish` is "stop", "length" or "cancelled"."""

    prompt: Sequence[int] = ()
    reused: int = 0
    generated: int = 0  # tokens of the answer; those that only repeat whitespace taken off the prompt belong to that
    finish: str = "cancelled"


def generate(context: Context, request: Mapping[str, Any], report: Report) -> Iterator[str]:
    """Yield the answer's text, "" after each batch of the prompt, and fill in `report`. Ends early when aborted."""
    layout = _layout(context, request["prompt"])
    required = layout.required.encode()
    # A prompt that fills the context leaves no room for an answer; an answer takes half of it at most.
    limit = max(1, min(request["max_tokens"], context.size // 2))
    room = max(1, context.size - limit - min(len(required), context.size // 4))
    report.prompt = fit(layout.segments, room)
    context.keep(min(_common(context.held, report.prompt), len(report.prompt) - 1))
    report.reused = len(context.held)
    for start in range(report.reused, len(report.prompt), BATCH):
        if not context.extend(report.prompt[start : start + BATCH]):
            return
        yield ""
    answer = AnswerText(request["stop"])
    sampler = Sampler(request["temperature"], request["parameters"])
    requirement = Requirement(required)
    while True:
        token = _pick(context, sampler, requirement)
        if context.vocabulary.ends(token):
            report.finish = "stop"
            return
        piece = requirement.take(context.vocabulary.piece(token))
        report.generated += bool(piece)
        text = answer.feed(piece)
        if text:
            yield text
        if answer.stopped:
            report.finish = "stop"
            return
        if report.generated >= limit or len(context.held) + 1 >= context.size:
            report.finish = "length"
            return
        if not context.extend([token]):
            return


def _layout(context: Context, prompt: Mapping[str, Any]) -> Layout:
    vocabulary = context.vocabulary
    if prompt["kind"] == "raw":
        return raw_layout(prompt, vocabulary)
    if not vocabulary.fim.infill:
        raise WorkerError("infill-unsupported", "This model's vocabulary has no infill tokens.")
    return infill_layout(prompt, vocabulary)


def _common(held: Sequence[int], wanted: Sequence[int]) -> int:
    for index, (have, want) in enumerate(zip(held, wanted, strict=False)):
        if have != want:
            return index
    return min(len(held), len(wanted))


def _pick(context: Context, sampler: Sampler, requirement: Requirement) -> int:
    logits = context.logits()
    if requirement.left:
        allowed = context.vocabulary.table.allowed(requirement.left)
        if len(allowed):
            return sampler.pick(logits, allowed)
        requirement.give_up()  # no token has these bytes
    return sampler.pick(logits)
