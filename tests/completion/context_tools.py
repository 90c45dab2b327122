"""Documents and looks for tests of the sources of context. A module of helpers for tests."""

from __future__ import annotations

from collections.abc import Callable

from completion.context.base import Look
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Text
from lsp_server.edit import Edit
from lsp_server.lines import Lines
from lsp_server.positions import Encoding


def document(name: str, text: str | Text, language: str = "python") -> DocumentSnapshot:
    text = PlainText(text) if isinstance(text, str) else text
    return DocumentSnapshot(f"file:///w/{name}", language, 1, text, name)


def edited(before: DocumentSnapshot, edit: Edit) -> DocumentSnapshot:
    """The document after one edit, as the server has it: a tree that shares what was not edited."""
    text = before.text
    lines = text if isinstance(text, Lines) else Lines(text.slice(0, len(text)))
    assert edit.range is not None
    first, column, last, end = edit.range
    new = lines.replaced((first, column), (last, end), edit.text, Encoding.UTF16)
    return DocumentSnapshot(before.uri, before.language_id, before.version + 1, new, before.path, None, before.opened)


def never() -> bool:
    return False


def nothing_ignored(_: DocumentSnapshot) -> bool:
    return False


def look(
    marked: str | DocumentSnapshot,
    *others: DocumentSnapshot,
    shown: tuple[int, int] | None = None,
    tokens: int = 500,
    language: str = "python",
    ignored: Callable[[DocumentSnapshot], bool] = nothing_ignored,
    late: Callable[[], bool] = never,
) -> Look:
    """The cursor is at `|` in `marked`, of which the lines `shown` are in the window: all, if that is not said."""
    if isinstance(marked, str):
        before, _, after = marked.partition("|")
        own = document("current.py", before + after, language)
    else:
        own = marked
        text = own.text.slice(0, len(own.text))
        before, after = text, ""
    lines = before.count("\n")
    count = lines + after.count("\n") + 1
    first, end = shown or (0, count)
    seen_before = "\n".join(before.split("\n")[first:])
    seen_after = "\n".join(after.split("\n")[: end - lines])
    context = CompletionContext(own, len(before), others=others)
    return Look(context, seen_before, seen_after, tokens, ignored, late, (first, end))
