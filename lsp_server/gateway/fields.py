"""Reads the JSON bodies of requests, field by field. Must not know which fields there are."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from lsp_server.gateway.refusal import Cause, Refusal

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_STOPS = 16
_MAX_STOP = 256  # code points of one


class Fields:
    """An object within a body; `null` counts as not given. `where` is the way to it. All methods raise Refusal."""

    def __init__(self, record: Mapping[str, Any], where: tuple[str, ...] = ()) -> None:
        self._record = record
        self._where = where

    @classmethod
    def of(cls, body: bytes) -> Fields:
        try:
            record = json.loads(body, strict=False)
        except (ValueError, RecursionError):
            raise Refusal(Cause.MALFORMED, "The request's body is not valid JSON.") from None
        if not isinstance(record, dict):
            raise Refusal(Cause.MALFORMED, "The request's body is not a JSON object.")
        return cls(record)

    def wrong(self, name: str, allowed: str) -> Refusal:
        return Refusal(Cause.FIELD, f"{name}: must be {allowed}", field=(*self._where, name))

    def given(self, name: str) -> Any:
        return self._record.get(name)

    def within(self, name: str) -> Fields:
        """The object `name`; an empty one if it is not given."""
        value = self.given(name)
        if not isinstance(value, dict | None):
            raise self.wrong(name, "an object")
        return Fields(value or {}, (*self._where, name))

    def text(self, name: str) -> str:
        value = self.given(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a text")
        return _whole(value)

    def optional_text(self, name: str) -> str | None:
        return None if self.given(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self.given(name)
        if not isinstance(value, bool | None):
            raise self.wrong(name, "true or false")
        return bool(value)

    def whole(self, name: str, low: int, high: int = 10**9) -> int | None:
        value = self.given(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(name, f"a whole number {_range(low, high)}")
        return value

    def number(self, name: str, low: float, high: float = 1e9, *, above: bool = False) -> float | None:
        """`above`: `low` itself is not allowed."""
        value = self.given(name)
        if value is None:
            return None
        numeric = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not numeric or not low <= value <= high or (above and value == low):
            raise self.wrong(name, f"a number {_range(low, high, above=above)}")
        return float(value)

    def seed(self, name: str) -> int | None:
        """Below 0 it means any, as in llama.cpp."""
        value = self.whole(name, -(2**63), 2**63 - 1)
        return None if value is not None and value < 0 else value

    def stops(self, name: str, most: int = MAX_STOPS) -> tuple[str, ...]:
        """A text or a list of texts, none of them empty."""
        value = self.given(name)
        texts = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(texts, list) or len(texts) > most or not all(_is_stop(text) for text in texts):
            raise self.wrong(name, f"a list of at most {most} texts of 1 to {_MAX_STOP} characters")
        return tuple(map(_whole, texts))

    def texts_by_name(self, name: str) -> tuple[tuple[str, str], ...]:
        value = self.within(name)
        return tuple((_whole(key), value.text(key)) for key in value._record)


def _is_stop(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= _MAX_STOP


def _range(low: float, high: float, *, above: bool = False) -> str:
    least = f"above {low:g}" if above else f"of at least {low:g}"
    return least if high >= 1e9 else f"{least} and at most {high:g}"


def _whole(text: str) -> str:
    """Halves of surrogate pairs, which JSON can hold, become U+FFFD: neither models nor UTF-8 know them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if _SURROGATE.search(text) else text
