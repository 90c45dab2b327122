"""What a person at a terminal hears: notes on stderr, the result alone on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import BinaryIO

from lsp_server.settings import Problem


class Terminal:
    """Implements `backends.base.Observer` on stderr."""

    def __init__(self, out: BinaryIO, *, explain: bool = False) -> None:
        self._out = out
        self._explain = explain
        self._said: set[str] = set()

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        if key not in self._said and (warning or self._explain):
            self._said.add(key)
            note(message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if not done and key not in self._said:
            self._said.add(key)
            note(f"{title} …")

    def result(self, text: str) -> None:
        """Write the result, UTF-8 on every system, with a line end. Raises BrokenPipeError."""
        self._out.write(text.encode("utf-8", "replace") + b"\n")
        self._out.flush()


def note(message: str) -> None:
    sys.stderr.write(f"midfill: {message}\n")
    sys.stderr.flush()


def tell(problems: Iterable[Problem]) -> None:
    for problem in problems:
        note(str(problem))
