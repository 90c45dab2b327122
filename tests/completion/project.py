"""A small workspace on disk, and what the source of imports gives in it. A module of helpers for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from completion.context.base import Look, Snippet
from completion.context.imports import Imports
from completion.types import CompletionContext, DocumentSnapshot, PlainText
from lsp_server.language_ids import language_id
from tests.completion.golden import at_cursor


class Project:
    """`now` is the time that the source goes by, seconds."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 0.0
        self.imports = Imports(lambda: self.now)

    def write(self, files: dict[str, str]) -> None:
        for path, text in files.items():
            whole = self.root / path
            whole.parent.mkdir(parents=True, exist_ok=True)
            whole.write_text(text, encoding="utf-8", newline="")

    def document(self, path: str, text: str) -> DocumentSnapshot:
        uri = (self.root / path).as_uri()
        return DocumentSnapshot(uri, language_id(path), 1, PlainText(text), path, str(self.root))

    def look(
        self,
        path: str,
        marked: str,
        *,
        others: Sequence[DocumentSnapshot] = (),
        ignored: Callable[[DocumentSnapshot], bool] = lambda _: False,
        late: Callable[[], bool] = lambda: False,
        window: int = 100_000,
    ) -> Look:
        text, offset = at_cursor(marked)
        context = CompletionContext(self.document(path, text), offset, others=tuple(others))
        before, after = (part.replace("\r\n", "\n") for part in (text[:offset], text[offset:]))
        return Look(context, before[-window:], after[:window], 1000, ignored, late)

    def snippets(self, path: str, marked: str, **more: object) -> list[Snippet]:
        """Best first."""
        found = self.imports.snippets(self.look(path, marked, **more))  # type: ignore[arg-type]
        return sorted(found, key=lambda snippet: -snippet.score)

    def texts(self, path: str, marked: str, **more: object) -> dict[str, str]:
        """Texts by path, one after the other."""
        shown: dict[str, str] = {}
        for snippet in self.snippets(path, marked, **more):
            shown[snippet.path] = shown.get(snippet.path, "") + snippet.text
        return shown
