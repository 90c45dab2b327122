"""What became of suggestions, language by language, and what follows from it. Kept on this machine alone.

Must not know LSP, and holds no text: only names of languages and counts.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

# A share of accepted suggestions is read from the last ones: each new one takes this part of the weight.
_WEIGHT = 0.05
_FEW = 20  # suggestions that say nothing yet
_GOOD, _BAD = 0.25, 0.05  # shares of accepted suggestions between which the user is fairly content, and not at all
_SLOWEST = 2.5  # times the wait
_LONGEST = 12  # code points an unasked suggestion must have at most
_LANGUAGES = 200  # kept in the file, those last used
_NAME = 100  # code points of a language's name in it
_BYTES = 1 << 18  # of a file that is read: more than so many languages take


def learned_file() -> Path | None:
    """Where the user's state is kept; None where the user has no home."""
    path = platformdirs.user_state_path("midfill") / "learned.json"
    return path if path.is_absolute() else None


@dataclass(slots=True)
class Fates:
    """Counts of one language. `rate`: share accepted of the last ones, 0 to 1."""

    shown: int = 0
    accepted: int = 0
    partially: int = 0
    rejected: int = 0
    rate: float = _GOOD


class Learned:
    """`path`: the file it is kept in, across starts and for all editors; None: only in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._languages: dict[str, Fates] = {}
        self._new: dict[str, Fates] = {}  # what the file does not know yet
        if path is not None:
            with suppress(OSError):
                self._languages = _read(path)

    def shown(self, language: str) -> None:
        for fates in self._both(language):
            fates.shown += 1

    def accepted(self, language: str, *, partly: bool = False) -> None:
        for fates in self._both(language):
            if partly:
                fates.partially += 1
            else:
                fates.accepted += 1
        self._rate(language, 0.5 if partly else 1.0)

    def rejected(self, language: str) -> None:
        for fates in self._both(language):
            fates.rejected += 1
        self._rate(language, 0.0)

    def patience(self, language: str) -> float:
        """By how much the wait before a request is to be longer, from 1 on."""
        return 1 + (_SLOWEST - 1) * self._unwanted(language)

    def least(self, language: str) -> int:
        """Code points without white space that a suggestion nobody asked for must have to be shown."""
        return 1 + round((_LONGEST - 1) * self._unwanted(language))

    def counts(self) -> dict[str, dict[str, int]]:
        """By language; what was shown, accepted, accepted in part, rejected."""
        return {
            language: {
                "shown": fates.shown,
                "accepted": fates.accepted,
                "partiallyAccepted": fates.partially,
                "rejected": fates.rejected,
            }
            for language, fates in sorted(self._languages.items())
        }

    def save(self) -> None:
        """Add what is new to the file, where other editors may have added theirs. Never raises: it is no great loss."""
        if self._path is None or not self._new:
            return
        try:
            kept = _read(self._path)
        except OSError:
            return  # it is there and cannot be read now: it is not to be replaced by what is new alone
        for language, new in self._new.items():
            if len(language) > _NAME:
                continue
            old = kept[language] = kept.pop(language, Fates())  # at the end: those used last stay
            old.shown += new.shown
            old.accepted += new.accepted
            old.partially += new.partially
            old.rejected += new.rejected
            old.rate = self._languages[language].rate
        with suppress(OSError):
            _write(self._path, dict(list(kept.items())[-_LANGUAGES:]))
            self._new.clear()

    def _both(self, language: str) -> tuple[Fates, Fates]:
        return self._languages.setdefault(language, Fates()), self._new.setdefault(language, Fates())

    def _rate(self, language: str, worth: float) -> None:
        fates = self._languages[language]
        fates.rate += (worth - fates.rate) * _WEIGHT

    def _unwanted(self, language: str) -> float:
        """0: wanted, or not known; 1: hardly ever accepted."""
        fates = self._languages.get(language)
        if fates is None or fates.accepted + fates.partially + fates.rejected < _FEW:
            return 0.0
        return min(1.0, max(0.0, (_GOOD - fates.rate) / (_GOOD - _BAD)))


def _read(path: Path) -> dict[str, Fates]:
    """What is no file of ours counts as none. Raises OSError if there is one that cannot be read."""
    try:
        with path.open("rb") as file:
            tree = json.loads(file.read(_BYTES))
        return {str(language): _fates(counts) for language, counts in tree["languages"].items()}
    except (FileNotFoundError, ValueError, OverflowError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


def _fates(counts: Any) -> Fates:
    shown, accepted, partially, rejected = (
        max(0, int(counts[name])) for name in ("shown", "accepted", "partially", "rejected")
    )
    return Fates(shown, accepted, partially, rejected, min(1.0, max(0.0, float(counts["rate"]))))


def _write(path: Path, languages: dict[str, Fates]) -> None:
    """In place of the old file at once: two editors may write at the same time."""
    tree = {
        "languages": {
            language: {name: getattr(fates, name) for name in ("shown", "accepted", "partially", "rejected", "rate")}
            for language, fates in languages.items()
        }
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=path.name, dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(tree, file)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
