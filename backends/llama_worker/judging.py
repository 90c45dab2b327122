"""Of several answers the likeliest together with the text after the hole. Knows no layout and no protocol.

For models that were not trained to infill: they see only what stands before the cursor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from backends.llama_worker.context import Context
from backends.llama_worker.sampling import log_sum
from backends.llama_worker.sequences import Held, Sequences
from backends.llama_worker.writing import Writer

ANSWERS = 6  # the first as asked, the others drawn
SEEN = 32  # tokens of what follows that are judged by
SEEN_CHARACTERS = 400  # that hold as many tokens
# What the answer's own likelihood counts beside that of what follows, measured (docs/quality.md): with 0 an answer wins
# that leads on to what follows but is unlikely itself, with 1 a short one.
OWN = 0.2


def best(
    context: Context, sequences: Sequences, writers: Sequence[Writer], prompt: Sequence[int], required: int, suffix: str
) -> Writer | None:
    """`required` are bytes at the beginning of each answer that belong to the prompt. None: aborted.

    Each answer counts up to its first line end. Raises WorkerError.
    """
    different = _different(writers)
    if len(different) < 2:
        return different[0]
    head = suffix[:SEEN_CHARACTERS]
    parts: list[tuple[Held, list[int], list[int]]] = []
    owns: list[float] = []
    try:
        for writer in different:
            tokens, rest = _ended(context, writer, required)
            owns.append(sum(writer.likelihoods[: len(tokens)]))
            whole = [*prompt, *tokens]
            assert writer.held is not None
            count = min(len(whole) - 1, writer.evaluated)
            goal = context.vocabulary.tokenize(rest + head, joined=True)[:SEEN]
            parts.append((sequences.fork(writer.held, count), [*whole[count:], *goal[:-1]], goal))
        if not sequences.extend([(held, tokens) for held, tokens, _ in parts], last_only=False):
            return None
        scores, row = [], 0
        for _, tokens, goal in parts:
            row += len(tokens)
            scores.append(_likelihood(context, row - len(goal), goal))
        scores = [score + OWN * own for score, own in zip(scores, owns, strict=True)]
    finally:
        for held, _, _ in parts:
            sequences.drop(held)
    return different[int(np.argmax(scores))]


def first_line(text: str) -> str:
    """Up to the first line end after text."""
    begins = len(text) - len(text.lstrip())
    end = text.find("\n", begins)
    return text if end < 0 else text[:end]


def _different(writers: Sequence[Writer]) -> list[Writer]:
    """One of each text; those that hold nothing are left out if others do."""
    by_text: dict[str, Writer] = {}
    for writer in writers:
        by_text.setdefault(first_line(writer.text).rstrip(), writer)
    return [writer for text, writer in by_text.items() if text] or [writers[0]]


def _ended(context: Context, writer: Writer, required: int) -> tuple[list[int], str]:
    """The answer's tokens up to its first line end, and the text of one that goes across it, as far as it counts."""
    length = required + len(first_line(writer.text).encode())
    size = 0
    for index, token in enumerate(writer.tokens):
        piece = context.vocabulary.piece(token)
        if size + len(piece) > length:
            return writer.tokens[:index], piece[: length - size].decode("utf-8", "ignore")
        size += len(piece)
    return writer.tokens, ""


def _likelihood(context: Context, row: int, goal: Sequence[int]) -> float:
    """The logarithm of the probability of `goal`, whose first token follows what stood in `row`."""
    total = 0.0
    for index, token in enumerate(goal, row):
        logits = context.logits(index)
        total += float(logits[token]) - log_sum(logits)
    return total
