"""textDocument/inlineCompletion. Decides nothing: the session does."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.convert import inline_list, pair
from lsp_server.session import Asked

if TYPE_CHECKING:
    from lsp_server.server import Server


def register(server: Server) -> None:
    def inline_completion(params: types.InlineCompletionParams) -> object:
        info, msg_id = params.context.selected_completion_info, server.protocol.message_id
        asked = Asked(
            request_id=str(msg_id),
            received=server.protocol.received,
            uri=params.text_document.uri,
            position=pair(params.position),
            invoked=params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked,
            chosen=None if info is None else (info.text, pair(info.range.start), pair(info.range.end)),
        )
        server.start()  # some clients never send `initialized`
        return server.session.complete(asked, inline_list, partial(server.protocol.answer, msg_id))

    server.protocol.requests[types.TEXT_DOCUMENT_INLINE_COMPLETION] = inline_completion
