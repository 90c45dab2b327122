"""What ways to choose context found, summed up with standard errors. Knows no way and no repository."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """Of one place: identifiers wanted and found, tokens shown. `file` is where places are not independent."""

    file: str
    wanted: int
    found: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """`share` of the identifiers, with its standard error; `ratio` is to another way's share, None if that is 0."""

    name: str
    share: float
    error: float
    ratio: float | None
    ratio_error: float | None
    tokens: float  # shown, mean

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def row(name: str, results: Sequence[Result], other: Sequence[Result]) -> Row:
    """`other` has the results of what the ratio is to, of the same places in the same order."""
    wanted = sum(each.wanted for each in results)
    found = sum(each.found for each in results)
    beside = sum(each.found for each in other)
    share = found / wanted
    error = _error([(each.file, each.found - share * each.wanted) for each in results]) / wanted
    ratio = ratio_error = None
    if beside:
        ratio = found / beside
        pairs = zip(results, other, strict=True)
        ratio_error = _error([(one.file, one.found - ratio * another.found) for one, another in pairs]) / beside
    return Row(name, share, error, ratio, ratio_error, sum(each.tokens for each in results) / len(results))


def _error(residuals: Sequence[tuple[str, float]]) -> float:
    """The standard error of their sum, which is 0: places of one file are alike, files are not."""
    by_file: dict[str, float] = defaultdict(float)
    for file, residual in residuals:
        by_file[file] += residual
    count = len(by_file)
    return sqrt(sum(residual**2 for residual in by_file.values()) * count / max(1, count - 1))
