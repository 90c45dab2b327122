"""One answer or several to one prompt, written in step. Knows no prompt's layout and no protocol."""

from __future__ import annotations

from collections.abc import Sequence

from backends.llama_worker.answer import AnswerText, Requirement
from backends.llama_worker.context import Context
from backends.llama_worker.errors import WorkerError
from backends.llama_worker.sampling import Logits, Sampler, log_sum
from backends.llama_worker.sequences import Held, Sequences

Texts = Sequence[tuple[int, str]]  # answer, text


class Writer:
    """One answer being written. `finish` is "stop" or "length" at its end."""

    def __init__(self, index: int, sampler: Sampler, required: bytes, answer: AnswerText) -> None:
        self.index = index
        self.finish = ""
        self.tokens: list[int] = []  # the last one may not be evaluated
        self.likelihoods: list[float] = []  # logarithm of each token's probability, where answers are judged
        self.text = ""
        self.written = 0  # tokens of the answer, without those that only repeat what was taken off the prompt
        self.evaluated = 0  # tokens of its sequence, prompt included, when it last picked
        self.held: Held | None = None
        self._sampler = sampler
        self._requirement = Requirement(required)
        self._answer = answer

    def pick(self, context: Context, logits: Logits, total: float | None = None) -> str:
        """Choose the next token; the text that it adds. `total`: `log_sum` of the logits, where answers are judged."""
        token = self._choose(context, logits)
        if context.vocabulary.ends(token):
            self.finish = "stop"
            return ""
        self.tokens.append(token)
        if total is not None:
            self.likelihoods.append(float(logits[token]) - total)
        piece = self._requirement.take(context.vocabulary.piece(token))
        self.written += bool(piece)
        text = self._answer.feed(piece)
        self.text += text
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


class Writing:
    """All answers, one token of each a batch. As long as some agree they share a sequence and a row of the batch."""

    def __init__(
        self,
        context: Context,
        sequences: Sequences,
        held: Held,
        writers: Sequence[Writer],
        limit: int,
        *,
        judged: bool,
    ) -> None:
        """To begin right after the prompt's last batch; `limit` are tokens of one answer."""
        self._context = context
        self._sequences = sequences
        self._writers = writers
        self._limit = limit
        self._judged = judged
        self._forks: list[Held] = []
        # A state that cannot be cut is kept as it is before the answer, so that the next prompt can go on from it.
        self._groups = [(self._fork(held) if context.whole else held, list(writers))]
        self._rows = [-1]

    @property
    def done(self) -> bool:
        return not self._groups

    def pick(self) -> Texts:
        """The next token of each, by the logits of the last batch; what it adds."""
        texts, groups = [], []
        for (held, writers), row in zip(self._groups, self._rows, strict=True):
            logits = self._context.logits(row)
            total = log_sum(logits) if self._judged else None
            by_token: dict[int, list[Writer]] = {}
            for writer in writers:
                writer.held, writer.evaluated = held, len(held.tokens)
                texts.append((writer.index, writer.pick(self._context, logits, total)))
                if not writer.finish and self._too_long(writer):
                    writer.finish = "length"
                if not writer.finish:
                    by_token.setdefault(writer.tokens[-1], []).append(writer)
            groups += [(held if not n else self._fork(held), same) for n, same in enumerate(by_token.values())]
        self._groups = groups
        return texts

    def _too_long(self, writer: Writer) -> bool:
        return writer.written >= self._limit or writer.evaluated + 1 >= self._context.size

    def extend(self) -> bool:
        """Evaluate what was picked. False: aborted. Where the cells do not suffice for all, the last answers end."""
        while self._groups:
            self._rows = list(range(len(self._groups)))
            try:
                return self._sequences.extend([(held, same[0].tokens[-1:]) for held, same in self._groups])
            except WorkerError as error:
                if error.kind != "full":
                    raise
            held, writers = self._groups.pop()
            for writer in writers:
                writer.finish = "length"
            if held in self._forks:
                self._forks.remove(held)
                self._sequences.drop(held)
        self._rows = []
        return True

    def _fork(self, held: Held) -> Held:
        self._forks.append(self._sequences.fork(held, len(held.tokens)))
        return self._forks[-1]

    def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for held in self._forks:
            self._sequences.drop(held)
