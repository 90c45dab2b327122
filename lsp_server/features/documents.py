"""What the client tells about its documents: open, change, close, save, and which one the user looks at."""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.documents import Edit
from lsp_server.features.configuration import PROJECT_FILE

if TYPE_CHECKING:
    from lsp_server.server import Server

logger = logging.getLogger(__name__)

DID_FOCUS = "textDocument/didFocus"  # of Copilot's clients


def register(server: Server) -> None:
    session = server.session
    handlers = server.protocol.notifications

    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        session.documents.open(document.uri, document.language_id, document.version, document.text)
        session.warm_soon(document.uri)

    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        uri, version = params.text_document.uri, params.text_document.version
        edits = [edit_of(change) for change in params.content_changes]
        document = session.documents.change(uri, version, edits)
        if document is None:
            _tell_not_open()
        else:
            session.edited(document)
            session.warm_soon(uri, edits[-1] if edits else None)

    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        session.closed(params.text_document.uri)

    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        session.saved(params.text_document.uri)
        if params.text_document.uri.endswith(PROJECT_FILE):
            server.reload_settings()

    def did_focus(params: Any) -> None:
        uri = uri_of(params)
        if uri is not None:
            session.documents.touch(uri)
            session.warm_soon(uri)

    def on_bad_notification(method: str, params: Any) -> None:
        """A text that cannot be read leaves our copy wrong: without a copy there is silence, not nonsense."""
        if (
            method in (types.TEXT_DOCUMENT_DID_OPEN, types.TEXT_DOCUMENT_DID_CHANGE)
            and (uri := uri_of(params)) is not None
        ):
            session.closed(uri)

    handlers[types.TEXT_DOCUMENT_DID_OPEN] = did_open
    handlers[types.TEXT_DOCUMENT_DID_CHANGE] = did_change
    handlers[types.TEXT_DOCUMENT_DID_CLOSE] = did_close
    handlers[types.TEXT_DOCUMENT_DID_SAVE] = did_save
    handlers[DID_FOCUS] = did_focus
    server.protocol.on_bad_notification = on_bad_notification


@cache
def _tell_not_open() -> None:
    """Once: a client that does so does it at every key."""
    logger.info("changes of documents that are not open are ignored")


def edit_of(change: types.TextDocumentContentChangeEvent) -> Edit:
    if isinstance(change, types.TextDocumentContentChangePartial):
        start, end = change.range.start, change.range.end
        return Edit(change.text, (start.line, start.character, end.line, end.character))
    return Edit(change.text)


def uri_of(params: Any) -> str | None:
    """The document of a message that is not in the specification, or is malformed."""
    document = params.get("textDocument") if isinstance(params, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    return uri if isinstance(uri, str) else None
