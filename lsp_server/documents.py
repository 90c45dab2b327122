"""The open documents. Must not know pygls or lsprotocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from completion.types import CompletionContext, DocumentSnapshot, Reason
from lsp_server.edit import Edit as Edit
from lsp_server.lines import Lines
from lsp_server.positions import Encoding
from lsp_server.uris import Root, relative_to_root
from lsp_server.view import View

_DELETED = 2000  # code points that are remembered of what was taken away


class Document:
    """An open document.

    `repo` is the name of its workspace folder, `path` its own in it, `root` the folder's own path. None outside of any.
    `deleted` is what the last edits took away, as long as they do nothing else, and the offset of the gap.
    """

    __slots__ = ("_kept", "deleted", "language_id", "lines", "opened", "path", "repo", "root", "uri", "version")

    def __init__(self, uri: str, language_id: str, version: int, text: str) -> None:
        self.uri = uri
        self.language_id = language_id
        self.version = version
        self.lines = Lines(text)  # replaced by every edit, never changed: whoever holds it has a snapshot
        self.opened = self.lines
        self.repo: str | None = None
        self.path: str | None = None
        self.root: str | None = None
        self.deleted: tuple[int, str] | None = None
        self._kept: DocumentSnapshot | None = None

    def apply(self, edit: Edit, encoding: Encoding) -> None:
        if edit.range is None:
            self.lines, self.deleted = Lines(edit.text), None
        else:
            start_line, start_column, end_line, end_column = edit.range
            start, end = (start_line, start_column), (end_line, end_column)
            self.deleted = None if edit.text else self._taken(min(start, end), max(start, end), encoding)
            self.lines = self.lines.replaced(start, end, edit.text, encoding)

    def _taken(self, start: tuple[int, int], end: tuple[int, int], encoding: Encoding) -> tuple[int, str] | None:
        first, last = self.lines.offset_at(*start, encoding), self.lines.offset_at(*end, encoding)
        text = self.lines.slice(first, last)
        at, before = self.deleted or (-1, "")
        if before and at == last:  # backwards, key by key
            text += before
        elif before and at == first:
            text = before + text
        return (first, text[:_DELETED]) if text else self.deleted

    def snapshot(self) -> DocumentSnapshot:
        """The document as it is now, untouched by later edits; the same object as long as nothing changes."""
        kept = self._kept
        if (
            kept is None
            or kept.text is not self.lines
            or (kept.version, kept.path, kept.root) != (self.version, self.path, self.root)
        ):
            kept = DocumentSnapshot(
                self.uri, self.language_id, self.version, self.lines, self.path, self.root, self.opened
            )
            self._kept = kept
        return kept

    def quoted(self) -> DocumentSnapshot:
        """What of it may be shown beside another document."""
        return self.snapshot()

    def view(self, context: CompletionContext) -> View | Reason:
        """What is asked for it, or why nothing is."""
        return View(context, context)

    @property
    def names(self) -> frozenset[str]:
        """The URIs by which it was asked."""
        return frozenset((self.uri,))

    @property
    def home(self) -> str:
        """The URI of the document it is part of."""
        return self.uri

    def place(self, roots: Sequence[Root]) -> None:
        """Find `repo` and `path` among the workspace folders."""
        self.repo, self.path, self.root = relative_to_root(self.uri, roots) or (None, None, None)
        self._kept = None


class Documents:
    """The open documents by URI. Iteration gives the most recently viewed first; opening and editing count as viewing.

    `encoding` is what positions of the client are counted in; it is set once, when the client has said what it offers.
    """

    def __init__(self, encoding: Encoding = Encoding.UTF16) -> None:
        self.encoding = encoding
        self.parts: dict[str, Document] = {}  # documents within others: a notebook's cells
        self._roots: tuple[Root, ...] = ()
        self._documents: dict[str, Document] = {}  # in order of viewing, last viewed last
        self._others: tuple[str, tuple[DocumentSnapshot, ...]] = ("", ())  # of the document that was asked about

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Document]:
        """Over a copy: documents may be opened and closed meanwhile."""
        return iter(tuple(reversed(self._documents.values())))

    def __contains__(self, uri: str) -> bool:
        return uri in self._documents

    @property
    def roots(self) -> tuple[Root, ...]:
        return self._roots

    def set_roots(self, roots: Iterable[Root]) -> None:
        """The workspace folders from now on."""
        self._roots = tuple(roots)
        self._others = ("", ())
        for document in self._documents.values():
            document.place(self._roots)

    def open(self, uri: str, language_id: str, version: int, text: str) -> Document:
        """A document that is already open is replaced; one that is part of another is known through that alone."""
        if (part := self.parts.get(uri)) is not None:
            return part
        return self.add(_new(uri, language_id, version, text))

    def add(self, document: Document) -> Document:
        uri = document.uri
        document.place(self._roots)
        self._others = ("", ())
        self._documents.pop(uri, None)
        self._documents[uri] = document
        return document

    def change(self, uri: str, version: int, edits: Iterable[Edit]) -> Document | None:
        """Apply `edits` one after the other, each to the result of the one before. None if the document is not open."""
        document = self._documents.get(uri)
        if document is None:
            return None
        for edit in edits:
            document.apply(edit, self.encoding)
        document.version = version
        self.touch(uri)
        return document

    def others(self, uri: str, most: int) -> tuple[DocumentSnapshot, ...]:
        """Snapshots of at most `most` other documents, last viewed first; the same object while one is typed in."""
        if (part := self.parts.get(uri)) is not None:
            uri = part.home
        if self._others[0] != uri:
            found = [document.quoted() for document in self if document.uri != uri]
            self._others = (uri, tuple(found[:most]))
        return self._others[1]

    def close(self, uri: str) -> Document | None:
        self._others = ("", ())
        return self._documents.pop(uri, None)

    def get(self, uri: str) -> Document | None:
        return self._documents.get(uri) or self.parts.get(uri)

    def snapshot(self, uri: str) -> DocumentSnapshot | None:
        document = self.get(uri)
        return None if document is None else document.snapshot()

    def touch(self, uri: str) -> None:
        """The user looks at this document now. Does nothing if it is not open."""
        if (part := self.parts.get(uri)) is not None:
            uri = part.home
        if uri != self._others[0]:
            self._others = ("", ())
        document = self._documents.pop(uri, None)
        if document is not None:
            self._documents[uri] = document


def _new(uri: str, language_id: str, version: int, text: str) -> Document:
    if uri.lower().endswith(".ipynb"):
        from lsp_server.ipynb import NotebookFile

        return NotebookFile(uri, language_id, version, text)
    return Document(uri, language_id, version, text)
