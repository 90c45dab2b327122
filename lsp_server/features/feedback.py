"""What the client tells about suggestions: shown, accepted in part. The messages of Copilot's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsp_server.server import Server

DID_SHOW = "textDocument/didShowCompletion"
DID_ACCEPT_PART = "textDocument/didPartiallyAcceptCompletion"


def register(server: Server) -> None:
    tally = server.session.tally

    def did_show(params: Any) -> None:
        tally.display(_suggestion_of(params))

    def did_accept_part(params: Any) -> None:
        tally.accept_part(_suggestion_of(params))

    server.protocol.notifications[DID_SHOW] = did_show
    server.protocol.notifications[DID_ACCEPT_PART] = did_accept_part


def _suggestion_of(params: Any) -> str:
    """The id in the item's accept command; empty if there is none."""
    try:
        return str(params["item"]["command"]["arguments"][0])
    except (LookupError, TypeError):
        return ""
