"""Reads the JSON of a notebook as it is while somebody edits it: as far as it makes sense, and with places.

Outputs are passed over, whatever they hold. Must not know documents.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = re.compile(r'"((?:[^"\\\r\n]++|\\[^\r\n])*+)"')
_ITEM = re.compile(rf"[ \t\r\n]*+{_STRING.pattern}[ \t\r\n]*+(,)?")
_SCALAR = re.compile(r'[^\s"{}\[\]:,]+')
# All up to the next bracket outside of strings: what is passed over is passed over at the speed of C.
_NO_BRACKET = re.compile(r'(?:[^\[\]{}"]++|"(?:[^"\\\r\n]++|\\[^\r\n])*+"?)*+')
# One code point as JSON writes it.
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|[^\\]")
_HALF_PAIR = re.compile("[\ud800-\udfff]")

# Names of kernels' languages where LSP has another.
_LANGUAGES = {
    "ipython": "python",
    "python3": "python",
    "c++": "cpp",
    "c#": "csharp",
    "f#": "fsharp",
    "bash": "shellscript",
}


class _BrokenError(Exception):
    """From here on it is no JSON."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A string of JSON: its content between the quotes is [start, end), `text` is what it means; None: no meaning."""

    start: int
    end: int
    raw: str
    text: str | None

    @property
    def shown(self) -> str:
        return self.raw if self.text is None else self.text

    def index_of(self, offset: int) -> int | None:
        """The place in `text` of a place in the document; None inside an escape."""
        at, wanted = 0, offset - self.start
        if "\\" not in self.raw:
            return wanted
        for index, unit in enumerate(_UNIT.finditer(self.raw)):
            at = unit.start()
            if at >= wanted:
                return index if at == wanted else None
            at = unit.end()
        return len(self.shown) if at == wanted else None

    def offset_of(self, index: int) -> int:
        if "\\" not in self.raw:
            return self.start + index
        lengths = (unit.end() - unit.start() for unit in _UNIT.finditer(self.raw))
        return self.start + next((length for n, length in enumerate(accumulate(lengths, initial=0)) if n == index), 0)


@dataclass(frozen=True, slots=True)
class JsonCell:
    """A cell with the strings of its source. `listed`: they are a list; else it is one string.

    `language_id` is empty if it is that of the notebook.
    """

    kind: str
    pieces: tuple[Piece, ...]
    listed: bool
    language_id: str

    @property
    def text(self) -> str:
        return "".join([piece.shown for piece in self.pieces])


@dataclass(frozen=True, slots=True)
class JsonNotebook:
    cells: tuple[JsonCell, ...]
    language_id: str

    def find(self, offset: int) -> tuple[int, int] | None:
        """The cell and the piece that an offset is in, its quotes aside."""
        pieces = [(piece.start, c, p) for c, cell in enumerate(self.cells) for p, piece in enumerate(cell.pieces)]
        at = bisect_right(pieces, (offset, len(self.cells), 0)) - 1
        if at < 0:
            return None
        _, cell, piece = pieces[at]
        return (cell, piece) if offset <= self.cells[cell].pieces[piece].end else None


def read(text: str) -> JsonNotebook | None:
    """None for what is no notebook in JSON, not even a broken one: some editors show a script in its place."""
    reader = _Reader(text)
    if reader.peek() != "{" and '"cell_type"' not in text:
        return None
    with suppress(_BrokenError):
        reader.notebook()
    return JsonNotebook(tuple(reader.cells), reader.language_id)


def decoded(raw: str) -> str | None:
    """The content of a string of JSON; None if it is none. Halves of surrogate pairs become U+FFFD."""
    escapes = raw.count("\\")
    if not escapes:
        return raw
    if escapes == 1 and raw.endswith("\\n"):  # nearly all
        return f"{raw[:-2]}\n"
    try:
        text = json.loads(f'"{raw}"', strict=False)
    except ValueError:
        return None
    return _HALF_PAIR.sub("\ufffd", text) if isinstance(text, str) else None


def encoded(text: str) -> str:
    """`text` between the quotes of JSON, as notebooks are stored: only what must be is escaped."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


class _Reader:
    def __init__(self, text: str) -> None:
        self.cells: list[JsonCell] = []
        self.language_id = "python"
        self._text = text
        self._at = 1 if text.startswith("\ufeff") else 0

    def peek(self) -> str:
        """The next character that is no white space; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def notebook(self) -> None:
        for key in self._members():
            if key == "cells":
                for _ in self._elements():
                    self.cells.append(self._cell())
            elif key == "metadata":
                self._metadata()
            else:
                self._skip()

    def _metadata(self) -> None:
        for key in self._members():
            if key not in ("kernelspec", "language_info"):
                self._skip()  # widgets keep their state here
                continue
            value = self._value()
            name = value.get("language" if key == "kernelspec" else "name") if isinstance(value, dict) else None
            if isinstance(name, str) and name:
                self.language_id = _LANGUAGES.get(name.lower(), name.lower())

    def _cell(self) -> JsonCell:
        kind, language_id, listed = "", "", False
        pieces: tuple[Piece, ...] = ()
        for key in self._members():
            if key == "cell_type" and self.peek() == '"':
                kind = self._string().shown
            elif key == "source":
                listed = self.peek() == "["
                pieces = self._strings() if listed else (self._string(),)
            elif key == "metadata" and self.peek() == "{":
                language_id = self._language() or language_id
            else:
                self._skip()
        return JsonCell(kind, pieces, listed, language_id)

    def _language(self) -> str:
        """What VS Code writes for a cell that is not of the kernel's language."""
        found = ""
        for key in self._members():
            if key == "vscode":
                value = self._value()
                name = value.get("languageId") if isinstance(value, dict) else None
                found = name if isinstance(name, str) else ""
            else:
                self._skip()
        return found

    def _members(self) -> Iterator[str]:
        """The keys of an object, each with its value next: the caller must read that."""
        for _ in self._inside("{", "}"):
            key = self._string().shown
            self._take(":")
            yield key

    def _elements(self) -> Iterator[None]:
        return self._inside("[", "]")

    def _inside(self, begin: str, end: str) -> Iterator[None]:
        self._take(begin)
        while (following := self.peek()) != end:
            yield
            following = self.peek()
            if following == ",":
                self._at += 1  # one too many at the end, too
            elif following != end:
                raise _BrokenError
        self._at += 1

    def _take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise _BrokenError
        self._at += 1

    def _string(self) -> Piece:
        self.peek()
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise _BrokenError
        self._at = found.end()
        return Piece(found.start(1), found.end(1), found[1], decoded(found[1]))

    def _strings(self) -> tuple[Piece, ...]:
        """A list of strings: the lines of a source, of which there are many."""
        self._take("[")
        found: list[Piece] = []
        item = _ITEM.match(self._text, self._at)
        while item is not None:
            found.append(Piece(item.start(1), item.end(1), item[1], decoded(item[1])))
            self._at = item.end()
            item = _ITEM.match(self._text, self._at) if item[2] else None
        self._take("]")
        return tuple(found)

    def _value(self) -> Any:
        self.peek()
        begin = self._at
        self._skip()
        try:
            return json.loads(self._text[begin : self._at])
        except ValueError:
            return None

    def _skip(self) -> None:
        """Pass over a value."""
        following = self.peek()
        if following not in ("[", "{"):
            found = _STRING.match(self._text, self._at) or _SCALAR.match(self._text, self._at)
            if found is None:
                raise _BrokenError
            self._at = found.end()
            return
        depth = 0
        while True:
            found = _NO_BRACKET.match(self._text, self._at)
            at = found.end() if found else self._at
            if at >= len(self._text):
                raise _BrokenError
            depth += 1 if self._text[at] in "[{" else -1
            self._at = at + 1
            if depth == 0:
                return
