"""From tokens' bytes to text, and what an answer must begin with. Knows numbers and bytes, no llama.cpp."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]


class ByteTable:
    """All tokens of a vocabulary sorted by their bytes; finds those that agree with what the answer must begin with."""

    def __init__(self, tokens: Iterable[tuple[bytes, int]]) -> None:
        ordered = sorted((piece, token) for piece, token in tokens if piece)
        self._pieces: Sequence[bytes] = [piece for piece, _ in ordered]
        self._ids: Ids = np.array([token for _, token in ordered], dtype=np.int32)

    def allowed(self, required: bytes) -> Ids:
        """Tokens that are a beginning of `required` (not empty) or begin with all of it."""
        chosen = [self._ids[slice(*self._range(required, required + b"\xff" * 8))]]
        for length in range(1, len(required)):
            piece = required[:length]
            chosen.append(self._ids[slice(*self._range(piece, piece + b"\0"))])
        return np.concatenate(chosen)

    def extends(self, piece: bytes) -> bool:
        """Whether some token begins with `piece` and goes on."""
        start, end = self._range(piece + b"\0", piece + b"\xff" * 8)
        return start < end

    def _range(self, start: bytes, end: bytes) -> tuple[int, int]:
        return bisect_left(self._pieces, start), bisect_left(self._pieces, end)


class Requirement:
    """Bytes the answer must begin with and that are not part of it: what was taken off the prompt."""

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

    The text up to and including the token that completes a stop string is let through; the reader cuts it. With
    `first_line` a line end after text stops it, too.
    """

    def __init__(self, stops: Iterable[str], *, first_line: bool = False) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = tuple(stop for stop in stops if stop)
        self._overlap = max(map(len, self._stops), default=1) - 1  # characters a stop string may begin before a token
        self._first_line = first_line
        self._begun = False  # something but white space was seen
        self._tail = ""
        self.stopped = False

    def feed(self, piece: bytes) -> str:
        text = self._decoder.decode(piece)
        if self._stops:
            seen = self._tail + text
            self.stopped = self.stopped or any(stop in seen for stop in self._stops)
            self._tail = seen[max(0, len(seen) - self._overlap) :]
        if self._first_line:
            self._end_line(text)
        return text

    def _end_line(self, text: str) -> None:
        begins = 0 if self._begun else len(text) - len(text.lstrip())
        self._begun = self._begun or begins < len(text)
        self.stopped = self.stopped or "\n" in text[begins:]
