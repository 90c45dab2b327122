"""Notebooks that are edited as the JSON they are stored in: what is asked is their code. Must not know LSP.

For editors that know no notebooks. An answer is written as JSON writes it, each line in a string of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from completion.context.notebook import Cell, main_language, name_in, script
from completion.types import Completion, CompletionContext, DocumentSnapshot, PlainText, Reason, Text
from lsp_server.documents import Document
from lsp_server.ipynb_json import JsonCell, JsonNotebook, Piece, decoded, encoded, read
from lsp_server.view import View

_LINES = re.compile(r"[^\n]*\n|[^\n]+")


class NotebookFile(Document):
    """An `.ipynb` file opened as text. Some editors show it as a script: then it is what it looks like."""

    __slots__ = ("_names", "_quoted", "_read")

    def __init__(self, uri: str, language_id: str, version: int, text: str) -> None:
        super().__init__(uri, language_id, version, text)
        self._names = {uri}
        self._read: tuple[Text, JsonNotebook | None] | None = None
        self._quoted: tuple[DocumentSnapshot, DocumentSnapshot] | None = None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    def quoted(self) -> DocumentSnapshot:
        document = super().quoted()
        if self._quoted is None or self._quoted[0] is not document:
            self._quoted = document, quoted(document, self._notebook())
        return self._quoted[1]

    def view(self, context: CompletionContext) -> View | Reason:
        found = view(context, self._notebook())
        if isinstance(found, View):
            self._names.add(found.context.document.uri)
        return found

    def _notebook(self) -> JsonNotebook | None:
        if self._read is None or self._read[0] is not self.lines:
            self._read = self.lines, parse(self.lines)
        return self._read[1]


def is_file(uri: str) -> bool:
    """Cells have a fragment behind the name."""
    return uri.lower().endswith(".ipynb")


def parse(text: Text) -> JsonNotebook | None:
    """None if the text is no JSON."""
    return read(text.slice(0, len(text)))


def quoted(document: DocumentSnapshot, notebook: JsonNotebook | None) -> DocumentSnapshot:
    """The document as others may show it: its code, never its outputs."""
    if notebook is None:
        return document
    cells = _cells(notebook)
    language_id = main_language(cells, notebook.language_id)
    # `opened` and the like are of the JSON: not taken over
    return DocumentSnapshot(
        document.uri, language_id, document.version, script(cells, language_id)[0], document.path, document.root
    )


def view(context: CompletionContext, notebook: JsonNotebook | None) -> View | Reason:
    """What is asked for a place in the JSON."""
    if notebook is None:
        return View(context, context)
    place = _place(context, notebook)
    if place is None:
        return Reason.OUTSIDE_CODE
    cells = _cells(notebook)
    language_id = cells[place.number].language_id
    text, base = script(cells, language_id, place.number)
    document = context.document
    name = name_in(document.uri, language_id, main_language(cells, notebook.language_id))
    snapshot = DocumentSnapshot(name, language_id, document.version, text, document.path, document.root)
    base += place.before  # where the string begins
    selected = context.selected
    if selected is not None:
        start, end, entry = (place.index(selected.start), place.index(selected.end), decoded(selected.text))
        if start is None or end is None:
            return Reason.OUTSIDE_CODE
        selected = replace(selected, text=selected.text if entry is None else entry, start=base + start, end=base + end)
    inner = replace(
        context,
        document=snapshot,
        offset=base + place.at,
        selected=selected,
        deleted=decoded(context.deleted) or "" if '"' not in context.deleted else "",
    )
    return View(context, inner, lambda found: place.back(found, base))


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in a string of a source. `before` counts the code points of the strings above it in its cell."""

    number: int
    piece: Piece
    before: int
    at: int  # in the meaning of the string
    separator: str | None  # between two strings of the list; None: all is one string

    def index(self, offset: int) -> int | None:
        inside = self.piece.start <= offset <= self.piece.end
        return self.piece.index_of(offset) if inside else None

    def back(self, found: Completion, base: int) -> Completion | None:
        start, end, whole = found.start - base, found.end - base, self.piece.shown
        if not 0 <= start <= end <= len(whole):
            return None
        text = self._written(found.text, whole[:start], whole[end:])
        return replace(found, text=text, start=self.piece.offset_of(start), end=self.piece.offset_of(end))

    def _written(self, text: str, before: str, after: str) -> str:
        """`text` as it stands between `before` and `after` in JSON: a new string behind each line end."""
        if self.separator is None:
            return encoded(text)
        joint = f'"{self.separator}"'
        written = joint.join([encoded(line) for line in _LINES.findall(text)])
        if before.endswith("\n"):
            written = joint + written
        return written + joint if text.endswith("\n") and after else written


def _place(context: CompletionContext, notebook: JsonNotebook) -> _Place | None:
    found = notebook.find(context.offset)
    if found is None:
        return None
    number, nth = found
    cell = notebook.cells[number]
    piece = cell.pieces[nth]
    at = piece.index_of(context.offset)
    if piece.text is None or at is None or cell.kind not in ("code", "markdown", "raw"):
        return None
    before = sum(len(each.shown) for each in cell.pieces[:nth])
    return _Place(number, piece, before, at, _separator(context.document.text, cell, nth) if cell.listed else None)


def _separator(document: Text, cell: JsonCell, nth: int) -> str:
    """What stands between the quotes of two strings of the list, as it is written there."""
    first, second = (nth - 1, nth) if nth else (nth, nth + 1)
    if second < len(cell.pieces):
        return document.slice(cell.pieces[first].end + 1, cell.pieces[second].start - 1)
    start = cell.pieces[nth].start - 1
    above = document.slice(max(0, start - 200), start)
    return "," + above[len(above.rstrip()) :]


def _cells(notebook: JsonNotebook) -> Sequence[Cell]:
    return [_cell(each, notebook.language_id) for each in notebook.cells]


def _cell(cell: JsonCell, language_id: str) -> Cell:
    if cell.kind == "code":
        return Cell(PlainText(cell.text), cell.language_id or language_id)
    return Cell(PlainText(cell.text), "plaintext", prose=cell.kind == "markdown")
