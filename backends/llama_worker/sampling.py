"""From logits to a token, and from tokens to text. Knows numbers and bytes, no llama.cpp."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Logits = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

PARAMETERS = frozenset({"seed", "top_k", "top_p"})
TOP_K = 40  # llama.cpp's own defaults
TOP_P = 0.95


class Sampler:
    """Greedy at temperature 0; else temperature, `top_k` (0: off), `top_p` and a draw, repeatable with `seed`."""

    def __init__(self, temperature: float, parameters: Mapping[str, Any]) -> None:
        self._temperature = temperature
        self._top_k = int(parameters.get("top_k", TOP_K))
        self._top_p = float(parameters.get("top_p", TOP_P))
        self._random = np.random.default_rng(parameters.get("seed"))

    def pick(self, logits: Logits, allowed: Ids | None = None) -> int:
        """One of all tokens, or of the `allowed` ones (not empty)."""
        scores = logits if allowed is None else logits[allowed]
        index = int(scores.argmax()) if self._temperature == 0 else self._draw(scores.astype(np.float64))
        return index if allowed is None else int(allowed[index])

    def _draw(self, scores: npt.NDArray[np.float64]) -> int:
        order: Ids = np.arange(len(scores))
        if 0 < self._top_k < len(scores):
            order = np.argpartition(scores, -self._top_k)[-self._top_k :]
        order = order[np.argsort(-scores[order], kind="stable")]
        weights = np.exp((scores[order] - scores[order[0]]) / self._temperature)
        weights /= weights.sum()
        enough = int(np.searchsorted(np.cumsum(weights), self._top_p)) + 1
        weights = weights[:enough]
        return int(order[self._random.choice(len(weights), p=weights / weights.sum())])


class ByteTable:
    """All tokens of a vocabulary sorted by their bytes; finds those that agree with what the answer must begin with."""

    def __init__(self, tokens: Iterable[tuple[bytes, int]]) -> None:
        ordered = sorted((piece, token) for piece, token in tokens if piece)
        self._pieces: Sequence[bytes] = [piece for piece, _ in ordered]
        self._ids: Ids = np.array([token for _, token in ordered], dtype=np.int64)

    def allowed(self, required: bytes) -> Ids:
        """Tokens that are a beginning of `required` (not empty) or begin with all of it."""
        chosen = [self._ids[slice(*self._range(required, required + b"\xff" * 8))]]
        for length in range(1, len(required)):
            piece = required[:length]
            chosen.append(self._ids[slice(*self._range(piece, piece + b"\0"))])
        return np.concatenate(chosen)

    def _range(self, start: bytes, end: bytes) -> tuple[int, int]:
        return bisect_left(self._pieces, start), bisect_left(self._pieces, end)


class Requirement:
    """Bytes the answer must begin with and that are not part of it: whitespace taken off the prompt."""

    def __init__(self, required: bytes) -> None:
        self._left = required

    @property
    def left(self) -> bytes:
        return self._left

    def take(self, piece: bytes) -> bytes:
        """What of a token's bytes is beyond the requirement."""
        beyond = piece[len(self._left) :]
        self._left = self._left[len(piece) :]
        return beyond

    def give_up(self) -> None:
        self._left = b""


class AnswerText:
    """Bytes to text: characters split over tokens are held back, stop strings are found although split.

    The text up to and including the token that completes a stop string is let through; the reader cuts it.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = tuple(stop for stop in stops if stop)
        self._overlap = max(map(len, self._stops), default=1) - 1  # characters a stop string may begin before a token
        self._tail = ""
        self.stopped = False

    def feed(self, piece: bytes) -> str:
        text = self._decoder.decode(piece)
        seen = self._tail + text
        self.stopped = self.stopped or any(stop in seen for stop in self._stops)
        self._tail = seen[max(0, len(seen) - self._overlap) :]
        return text
