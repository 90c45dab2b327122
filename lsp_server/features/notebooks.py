"""What the client tells about its notebooks: open, change, save, close. Their cells are documents."""

from __future__ import annotations

import logging
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.features.documents import edit_of
from lsp_server.notebook_messages import Change, Opened, Placed
from lsp_server.protocol import InvalidParamsError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lsp_server.notebooks import Notebooks
    from lsp_server.server import Server

logger = logging.getLogger(__name__)


def register(server: Server) -> None:
    """Extends what is done about bad messages: comes after the feature of documents."""
    handlers, feature = server.protocol.notifications, _Feature(server)
    handlers[types.NOTEBOOK_DOCUMENT_DID_OPEN] = feature.did_open
    handlers[types.NOTEBOOK_DOCUMENT_DID_CHANGE] = feature.did_change
    handlers[types.NOTEBOOK_DOCUMENT_DID_SAVE] = lambda params: None
    handlers[types.NOTEBOOK_DOCUMENT_DID_CLOSE] = feature.did_close
    server.protocol.on_bad_notification = feature.on_bad_notification


class _Feature:
    def __init__(self, server: Server) -> None:
        self._session = server.session
        self._of_documents = server.protocol.on_bad_notification

    @cached_property
    def _notebooks(self) -> Notebooks:
        """Imported when there is one: what puts cells together belongs to the engine."""
        from lsp_server.notebooks import Notebooks

        return Notebooks(self._session.documents)

    def did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        cells, texts = _placed(notebook.cells), _opened(params.cell_text_documents)
        try:
            self._notebooks.open(notebook.uri, notebook.version, cells, texts)
        except ValueError as error:
            raise InvalidParamsError(str(error)) from error

    def did_change(self, params: types.DidChangeNotebookDocumentParams) -> None:
        notebook, change = params.notebook_document, _change(params.change.cells)
        try:
            known = self._notebooks.change(notebook.uri, notebook.version, change)
        except ValueError as error:
            raise InvalidParamsError(str(error)) from error
        if not known:
            _tell_not_open()
        elif change.texts:
            cell, _, edits = change.texts[-1]
            self._session.warm_soon(cell, edits[-1] if edits else None)

    def did_close(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._close(params.notebook_document.uri)

    def _close(self, uri: str) -> None:
        self._session.forget(self._notebooks.close(uri))

    def on_bad_notification(self, method: str, params: Any) -> None:
        """As for documents: without a copy there is silence, not nonsense. To close, the URI is enough."""
        self._of_documents(method, params)
        if method in (
            types.NOTEBOOK_DOCUMENT_DID_OPEN,
            types.NOTEBOOK_DOCUMENT_DID_CHANGE,
            types.NOTEBOOK_DOCUMENT_DID_CLOSE,
        ):
            notebook = params.get("notebookDocument") if isinstance(params, dict) else None
            uri = notebook.get("uri") if isinstance(notebook, dict) else None
            if isinstance(uri, str):
                self._close(uri)


@cache
def _tell_not_open() -> None:
    """Once: a client that does so does it at every key."""
    logger.info("changes of notebooks that are not open are ignored")


def _change(cells: types.NotebookDocumentCellChanges | None) -> Change:
    if cells is None:
        return Change()
    texts = tuple(
        (each.document.uri, each.document.version, tuple(edit_of(change) for change in each.changes))
        for each in cells.text_content or ()
    )
    properties, structure = _placed(cells.data or ()), cells.structure
    if structure is None:
        return Change(properties=properties, texts=texts)
    array, closed = structure.array, structure.did_close or ()
    return Change(
        splice=(array.start, array.delete_count, _placed(array.cells or ())),
        opened=_opened(structure.did_open or ()),
        closed=tuple(document.uri for document in closed),
        properties=properties,
        texts=texts,
    )


def _placed(cells: Iterable[types.NotebookCell]) -> tuple[Placed, ...]:
    return tuple(Placed(cell.document, cell.kind == types.NotebookCellKind.Markup) for cell in cells)


def _opened(documents: Iterable[types.TextDocumentItem]) -> tuple[Opened, ...]:
    return tuple(Opened(each.uri, each.language_id, each.version, each.text) for each in documents)
