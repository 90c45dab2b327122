"""What a person at a terminal hears: notes on stderr, the result alone on stdout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from lsp_server.fds import OutputError, say
from lsp_server.settings import Problem


class Terminal:
    """Implements `backends.base.Observer` on stderr."""

    def __init__(self, out: BinaryIO, *, explain: bool = False) -> None:
        self._out = out
        self._explain = explain
        self._said: set[str] = set()
        self._messages: list[str] = []

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        if key not in self._said and (warning or self._explain):
            self._said.add(key)
            self._messages.append(message)
            note(message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if not done and key not in self._said:
            self._said.add(key)
            note(f"{title} …")

    def has_said(self, message: str) -> bool:
        return any(message in said for said in self._messages)

    def result(self, text: str) -> None:
        """Write the result, UTF-8 on every system, with a line end. Raises BrokenPipeError, OutputError."""
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        try:
            while data:
                data = data[self._out.write(data) :]
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(error.errno, error.strerror) from None


def note(message: str) -> None:
    say(f"midfill: {message}\n")


def tell(problems: Iterable[Problem]) -> None:
    for problem in problems:
        note(str(problem))
