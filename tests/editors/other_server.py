"""A language server that is not midfill: what users have for their language. Offers one word for the menu."""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("other", "1")


@server.feature(types.TEXT_DOCUMENT_COMPLETION)
def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
    lines = server.workspace.get_text_document(params.text_document.uri).source.split("\n")
    return [types.CompletionItem(label=f"otherword_{len(lines)}")]


if __name__ == "__main__":
    server.start_io()
