"""Halves of surrogate pairs, which JSON can hold and UTF-8 cannot. Imports nothing of ours."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


class Pairs:
    """Makes one character of two halves, even if they come in two parts of a text; of a half alone U+FFFD."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        """A part of the text; a first half at its end waits for the next one, unless it is the last."""
        if not self._half and text.isascii():
            return text
        text, self._half = self._half + text, ""
        if not last and "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        if _SURROGATE.search(text):
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text
