"""One request: evaluate what is new of the prompt, then write one or more answers side by side. Knows no protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llama_worker.answer import AnswerText, Requirement
from backends.llama_worker.context import Context
from backends.llama_worker.errors import WorkerError
from backends.llama_worker.layout import Layout, fit, infill_layout, raw_layout
from backends.llama_worker.sampling import Logits, Sampler
from backends.llama_worker.sequences import Held, Sequences

Texts = Sequence[tuple[int, str]]  # answer, text

OTHER_TEMPERATURE = 0.7  # at least, of answers beside the first: greedy ones would all be the same


@dataclass(slots=True)
class Report:
    """How a request went. `finish` is "stop", "length" or "cancelled"."""

    prompt: Sequence[int] = ()
    reused: int = 0
    held: int = 0  # tokens of the prompt's sequence
    generated: int = 0  # tokens of the answers; those that only repeat what was taken off the prompt belong to that
    finish: str = "cancelled"


class Writer:
    """One answer being written."""

    def __init__(self, index: int, held: Held, sampler: Sampler, required: bytes, answer: AnswerText) -> None:
        self.index = index
        self.held = held
        self.finish = ""
        self.token = -1  # picked, not yet evaluated
        self.written = 0  # tokens of the answer
        self._sampler = sampler
        self._requirement = Requirement(required)
        self._answer = answer

    def pick(self, context: Context, logits: Logits) -> str:
        """Choose the next token; the text that it adds."""
        self.token = self._choose(context, logits)
        if context.vocabulary.ends(self.token):
            self.finish = "stop"
            return ""
        piece = self._requirement.take(context.vocabulary.piece(self.token))
        self.written += bool(piece)
        text = self._answer.feed(piece)
        if self._answer.stopped:
            self.finish = "stop"
        return text

    def _choose(self, context: Context, logits: Logits) -> int:
        if self._requirement.left:
            allowed = context.vocabulary.table.allowed(self._requirement.left)
            if len(allowed):
                return self._sampler.pick(logits, allowed)
            self._requirement.give_up()  # no token has these bytes
        return self._sampler.pick(logits)

    def close(self) -> None:
        self._sampler.close()


def generate(context: Context, sequences: Sequences, request: Mapping[str, Any], report: Report) -> Iterator[Texts]:
    """Fill in `report`, and yield after each batch what it added: nothing while the prompt is evaluated.

    Between two steps other requests may compute. Ends early when aborted. Raises WorkerError.
    """
    layout = _layout(context, request)
    required = layout.required
    # A prompt that fills the context leaves no room for an answer; an answer takes half of it at most.
    limit = max(1, min(request["max_tokens"], context.size // 2))
    room = max(1, context.size - limit - min(len(required), context.size // 4))
    prompt = fit(layout.segments, room)
    report.prompt = prompt.tokens
    held = sequences.take(prompt)
    report.reused = report.held = len(held.tokens)
    try:
        steps = sequences.evaluate(held, prompt)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                report.held = len(held.tokens)
                if not end.value:
                    return
                break
            report.held = len(held.tokens)
            yield ()
        yield from _answers(context, sequences, held, request, required, limit, report)
    finally:
        report.held = len(held.tokens)
        sequences.release(held)


def _answers(
    context: Context,
    sequences: Sequences,
    held: Held,
    request: Mapping[str, Any],
    required: bytes,
    limit: int,
    report: Report,
) -> Iterator[Texts]:
    writers = _writers(context, sequences, held, request, required)
    try:
        yield from _write(context, sequences, writers, limit, report)
    finally:
        for writer in writers:
            writer.close()
            if writer.held is not held:
                sequences.drop(writer.held)


def _writers(
    context: Context, sequences: Sequences, held: Held, request: Mapping[str, Any], required: bytes
) -> list[Writer]:
    writers = []
    for index in range(request.get("candidates", 1)):
        temperature, parameters = request["temperature"], dict(request["parameters"])
        if index:
            temperature = max(temperature, OTHER_TEMPERATURE)
            parameters["seed"] = (parameters.get("seed") or 0) + index
        # A state that cannot be cut is kept as it is before the answer, so that the next prompt can go on from it.
        own = sequences.fork(held) if index or context.whole else held
        sampler = Sampler(context.library.api, temperature, parameters)
        answer = AnswerText(request["stop"], first_line=request.get("first_line", False))
        writers.append(Writer(index, own, sampler, required, answer))
    return writers


def _write(
    context: Context, sequences: Sequences, writers: Sequence[Writer], limit: int, report: Report
) -> Iterator[Texts]:
    """All answers in step: one token of each is one batch."""
    live = list(writers)
    rows = [-1] * len(live)  # all begin after the prompt's last token
    while True:
        texts = []
        for writer, row in zip(live, rows, strict=True):  # before others compute: the logits are of the last batch
            texts.append((writer.index, writer.pick(context, context.logits(row))))
            if not writer.finish and (writer.written >= limit or len(writer.held.tokens) + 1 >= context.size):
                writer.finish = "length"
        report.generated = sum(writer.written for writer in writers)
        live = [writer for writer in live if not writer.finish]
        if not live:
            report.finish = writers[0].finish
        yield texts
        if not live or not _extend(sequences, live):
            return
        rows = list(range(len(live)))


def _extend(sequences: Sequences, live: list[Writer]) -> bool:
    """False: aborted. Where the cells do not suffice for all answers, the last ones end."""
    while True:
        try:
            return sequences.extend([(writer.held, (writer.token,)) for writer in live])
        except WorkerError as error:
            if error.kind != "full":
                raise
        live.pop().finish = "length"
        if not live:
            return True


def _layout(context: Context, request: Mapping[str, Any]) -> Layout:
    vocabulary, prompt, heal = context.vocabulary, request["prompt"], request["parameters"].get("heal", True)
    if prompt["kind"] == "raw":
        return raw_layout(prompt, vocabulary, heal=heal)
    if not vocabulary.fim.infill:
        raise WorkerError("infill-unsupported", "This model's vocabulary has no infill tokens.")
    return infill_layout(prompt, vocabulary, heal=heal)
