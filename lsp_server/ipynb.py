"""Notebooks that are edited as the JSON they are stored in. Must not know LSP."""

from __future__ import annotations

from lsp_server.documents import Document


class NotebookFile(Document):
    """An `.ipynb` file opened as text."""

    __slots__ = ()
