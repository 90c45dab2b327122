"""textDocument/completion, for editors that do not know inline completion. Decides nothing: the session does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.convert import completion_list, pair
from lsp_server.session import Asked

if TYPE_CHECKING:
    from lsp_server.server import Server


def register(server: Server) -> None:
    def completion(params: types.CompletionParams) -> object:
        # The trigger kind "invoked" is also sent while typing, so it says nothing.
        msg_id, received = server.protocol.message_id, server.protocol.received
        server.start()
        return server.session.complete(
            Asked(str(msg_id), received, params.text_document.uri, pair(params.position)),
            completion_list,
            partial(server.protocol.answer, msg_id),
        )

    server.protocol.requests[types.TEXT_DOCUMENT_COMPLETION] = completion
