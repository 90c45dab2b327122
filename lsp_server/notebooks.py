"""Open notebooks: ordered cells that are documents of their own. Must not know pygls or lsprotocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from completion.context.notebook import Cell, main_language, name_in, script
from completion.types import Completion, CompletionContext, DocumentSnapshot, Reason
from lsp_server.documents import Document, Documents
from lsp_server.notebook_messages import Change, Opened, Placed
from lsp_server.uris import Root
from lsp_server.view import View


class BadNotebookError(ValueError):
    """The client's messages contradict each other, so our copy is wrong. The text holds nothing of the notebook."""


class CellDocument(Document):
    """A cell. `known` tells whether its text has come: without it the cell only keeps its place."""

    __slots__ = ("_cell", "known", "notebook", "prose")

    def __init__(self, notebook: Notebook, uri: str, opened: Opened | None = None) -> None:
        text, language_id, version = (opened.text, opened.language_id, opened.version) if opened else ("", "", 0)
        super().__init__(uri, language_id, version, text)
        self.notebook = notebook
        self.known = opened is not None
        self.prose = False
        self._cell: Cell | None = None

    @property
    def home(self) -> str:
        return self.notebook.uri

    @property
    def cell(self) -> Cell:
        """The cell as it is now; the same object as long as nothing changes."""
        if self._cell is None or self._cell.text is not self.lines:
            self._cell = Cell(self.lines, self.language_id, prose=self.prose)
        return self._cell

    def mark(self, *, prose: bool) -> None:
        if prose != self.prose:
            self.prose, self._cell = prose, None

    def view(self, context: CompletionContext) -> View:
        return self.notebook.view_of(self, context)


class Notebook(Document):
    """A notebook. It has no text itself; other documents see its code as a script."""

    __slots__ = ("_names", "_quoted", "cells")

    def __init__(self, uri: str, version: int) -> None:
        super().__init__(uri, "", version, "")
        self.cells: list[CellDocument] = []
        self._quoted: tuple[tuple[Cell, ...], DocumentSnapshot] | None = None
        self._names = {uri}

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    def place(self, roots: Sequence[Root]) -> None:
        super().place(roots)
        self._quoted = None
        self.place_cells()

    def place_cells(self) -> None:
        """A cell is where its notebook is."""
        for cell in self.cells:
            cell.repo, cell.path, cell.root = self.repo, self.path, self.root

    def view(self, context: CompletionContext) -> Reason:
        return Reason.NOT_OPEN  # a cell must be named

    def quoted(self) -> DocumentSnapshot:
        cells = self._cells()
        if self._quoted is None or self._quoted[0] != cells:
            self._quoted = cells, self._snapshot(cells, main_language(cells), None)[0]
        return self._quoted[1]

    def view_of(self, document: CellDocument, context: CompletionContext) -> View:
        """The cells as one text, with the cursor in it."""
        snapshot, base = self._snapshot(self._cells(), document.cell.language_id, self.cells.index(document))
        selected = context.selected
        if selected is not None:
            selected = replace(selected, start=selected.start + base, end=selected.end + base)
        inner = replace(context, document=snapshot, offset=context.offset + base, selected=selected)

        def back(found: Completion) -> Completion | None:
            start, end = found.start - base, found.end - base
            return replace(found, start=start, end=end) if 0 <= start <= end <= len(context.document.text) else None

        return View(context, inner, back)

    def _cells(self) -> tuple[Cell, ...]:
        return tuple([document.cell for document in self.cells])

    def _snapshot(self, cells: Sequence[Cell], language_id: str, current: int | None) -> tuple[DocumentSnapshot, int]:
        text, base = script(cells, language_id, current)
        name = name_in(self.uri, language_id, main_language(cells))
        self._names.add(name)
        return DocumentSnapshot(name, language_id, self.version, text, self.path, self.root), base


class Notebooks:
    """The open notebooks, kept among the documents: a notebook under its URI, cells as parts of it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._open: dict[str, Notebook] = {}

    def open(self, uri: str, version: int, cells: Sequence[Placed], texts: Sequence[Opened]) -> None:
        """A notebook that is already open is replaced. Raises BadNotebookError."""
        self.close(uri)
        notebook = Notebook(uri, version)
        self._splice(notebook, Change((0, 0, cells), texts))
        self._open[uri] = notebook
        self._documents.add(notebook)
        self._enter(notebook)

    def change(self, uri: str, version: int, change: Change) -> bool:
        """False: the notebook is not open. Raises BadNotebookError; then the notebook must be closed."""
        notebook = self._open.get(uri)
        if notebook is None:
            return False
        self._splice(notebook, change)
        if change.splice or change.opened or change.closed:
            self._enter(notebook)
        known = {document.uri: document for document in notebook.cells}
        for each in change.properties:
            if each.uri in known:
                known[each.uri].mark(prose=each.prose)
        for cell_uri, cell_version, edits in change.texts:
            document = known.get(cell_uri)
            if document is None or not document.known:
                continue  # no text of it has come, so there is none to change
            for edit in edits:
                document.apply(edit, self._documents.encoding)
            document.version = cell_version
        notebook.version = version
        self._documents.touch(uri)
        return True

    def close(self, uri: str) -> frozenset[str]:
        """The URIs by which it was asked; none if it is not open."""
        notebook = self._open.pop(uri, None)
        if notebook is None:
            return frozenset()
        self._leave(notebook)
        if self._documents.get(uri) is notebook:  # the same file may be open as text, too
            self._documents.close(uri)
        return notebook.names

    def _splice(self, notebook: Notebook, change: Change) -> None:
        """Raises BadNotebookError before anything has changed."""
        known = {document.uri: document for document in notebook.cells}
        for gone in change.closed:
            known.pop(gone, None)
        for opened in change.opened:
            known[opened.uri] = CellDocument(notebook, opened.uri, opened)
        start, deleted, placed = change.splice or (0, 0, ())
        if not (0 <= start <= len(notebook.cells) and 0 <= deleted <= len(notebook.cells) - start):
            raise BadNotebookError("cells change that are not there")
        uris = [document.uri for document in notebook.cells]
        uris[start : start + deleted] = [each.uri for each in placed]
        if len(set(uris)) < len(uris) or any(self._elsewhere(uri, notebook) for uri in uris):
            raise BadNotebookError("a cell is in two places")
        prose = {document.uri: document.prose for document in notebook.cells}
        prose.update((each.uri, each.prose) for each in placed)
        notebook.cells = [known.get(uri) or CellDocument(notebook, uri) for uri in uris]
        for document in notebook.cells:
            document.mark(prose=prose[document.uri])

    def _elsewhere(self, uri: str, notebook: Notebook) -> bool:
        """Whether this is a cell of another notebook."""
        part = self._documents.parts.get(uri)
        return part is not None and part.home != notebook.uri

    def _enter(self, notebook: Notebook) -> None:
        """Have the cells found by their URIs. Who also opens them as documents of their own tells the same twice."""
        self._leave(notebook)
        notebook.place_cells()
        for document in notebook.cells:
            self._documents.close(document.uri)
            if document.known:
                self._documents.parts[document.uri] = document

    def _leave(self, notebook: Notebook) -> None:
        parts = self._documents.parts
        for uri in [uri for uri, part in parts.items() if part.home == notebook.uri]:
            del parts[uri]
