"""Recorded typing: sessions of edits, one key at a time. Knows nothing of who asks for what at which key.

A session begins with the files as they were and goes through runs: a pause, a place, what is taken away there, what is
typed. `benchmarks/record_typing.py` makes recordings.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BACKSPACE = "\b"
_SHORT = 12  # characters that are taken away one by one; more are selected and go at once
# Between two keys of one run, ms; drawn anew for each from a fixed seed.
_BETWEEN_MS, _SPREAD, _LEAST_MS, _MOST_MS = 130.0, 0.4, 40.0, 600.0
_AFTER_LINE = 2.5  # times as long
_THINKS, _THOUGHT_MS = 0.02, (900.0, 3000.0)


class RecordingError(Exception):
    """A file is no recording. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Key:
    """One change of a file, `pause_ms` after the one before. Offsets are code points of the file as it then is."""

    pause_ms: float
    path: str
    start: int
    end: int
    text: str

    @property
    def cursor(self) -> int:
        """Where the cursor is afterwards."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Run:
    """`keys`: text typed character by character, where a line end takes the indentation after it along, and backspaces;
    a list of one text for what came at once: a suggestion that was taken, a paste."""

    pause_ms: float
    path: str
    at: int
    remove: int
    keys: tuple[str | tuple[str], ...]


@dataclass(frozen=True, slots=True)
class Session:
    files: Mapping[str, str]
    runs: tuple[Run, ...]

    def typing(self, seed: int = 1) -> Iterator[Key]:
        """Every key, in order."""
        draw = random.Random(seed)
        for run in self.runs:
            pause = run.pause_ms
            for start, end, text in _changes(run):
                yield Key(pause, run.path, start, end, text)
                pause = _between(draw) * (_AFTER_LINE if text.startswith("\n") else 1)


def apply(text: str, key: Key) -> str:
    return text[: key.start] + key.text + text[key.end :]


def read(path: Path) -> list[Session]:
    """Raises RecordingError."""
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        return [Session(session["files"], tuple(map(run_of, session["runs"]))) for session in recorded["sessions"]]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{path} is no recording of typing: {error!r}") from error


def run_of(record: Sequence[Any]) -> Run:
    """From a list, as JSON has it."""
    pause_ms, path, at, remove, keys = record
    return Run(pause_ms, path, at, remove, tuple(part if isinstance(part, str) else (part[0],) for part in keys))


def _changes(run: Run) -> Iterator[tuple[int, int, str]]:
    at = run.at + run.remove
    if run.remove > _SHORT:
        at = run.at
        yield at, at + run.remove, ""
    else:
        for _ in range(run.remove):
            at -= 1
            yield at, at + 1, ""
    for text in _texts(run.keys):
        if text == BACKSPACE:
            at -= 1
            yield at, at + 1, ""
        else:
            yield at, at, text
            at += len(text)


def _texts(keys: Sequence[str | tuple[str]]) -> Iterator[str]:
    for part in keys:
        if isinstance(part, tuple):
            yield part[0]
            continue
        index = 0
        while index < len(part):
            end = index + 1
            while part[index] == "\n" and part[end : end + 1] in (" ", "\t"):
                end += 1
            yield part[index:end]
            index = end


def _between(draw: random.Random) -> float:
    if draw.random() < _THINKS:
        return draw.uniform(*_THOUGHT_MS)
    return min(_MOST_MS, max(_LEAST_MS, _BETWEEN_MS * draw.lognormvariate(0, _SPREAD)))
