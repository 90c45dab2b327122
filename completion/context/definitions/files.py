"""The files of a workspace as one look may see them: open documents first, then the disk, within bounds.

A repository may hold anything: nothing outside its root is read, no pipe or device, nothing large, nothing ignored.
Must not know languages.
"""

from __future__ import annotations

import math
import os
import stat
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from completion.context.definitions.code import Code, Language
from completion.types import DocumentSnapshot, PlainText, Text

LARGEST = 256 << 10  # bytes of a file, code points of an open document
FRESH = 3.0  # seconds during which nothing is asked of the disk again
MOST_FILES = 32  # read in one look
MOST_BYTES = 2 << 20  # read in one look
MOST_NAMES = 4000  # of a folder; in a larger one a name is asked for by itself
MOST_QUESTIONS = 400  # to the disk in one look
_KEPT_FILES = 400
_KEPT_FOLDERS = 400

_K = TypeVar("_K")
_V = TypeVar("_V")
_Stamp = tuple[int, int]  # mtime in ns, size; of a folder 0


@dataclass(slots=True)
class _Known:
    """What was found at a path, and when. `documents` are its names: as written, and where links lead."""

    checked: float
    stamp: _Stamp | None = None
    code: Code | None = None
    documents: tuple[DocumentSnapshot, ...] = ()


@dataclass(slots=True)
class _Folder:
    checked: float
    stamp: _Stamp | None = None
    names: frozenset[str] | None = frozenset()  # None: too many to know


class Files:
    """What is remembered from look to look."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.files: OrderedDict[tuple[str, str, Language], _Known] = OrderedDict()
        self.folders: OrderedDict[tuple[str, str], _Folder] = OrderedDict()
        self.open: dict[str, tuple[Text, Language, Code]] = {}

    def forget(self, uri: str) -> None:
        self.open.pop(uri, None)

    def now(self) -> float:
        return self._now()


class View:
    """A `Tree` for one look. `current` is never given. Without a root only what is open is seen."""

    def __init__(
        self,
        files: Files,
        language: Language,
        root: str | None,
        current: str,
        documents: Iterable[tuple[str, DocumentSnapshot]],
        ignored: Callable[[DocumentSnapshot], bool],
        late: Callable[[], bool],
    ) -> None:
        self._files = files
        self._language = language
        self._root = root
        self._current = current
        self._open = dict(documents)
        self._open_names: dict[str, set[str]] = {}
        for path in self._open:
            self._name(path)
        self._ignored = ignored
        self._late = late
        self._now = files.now()
        self._real_root: str | None = None
        self._read = self._bytes = self._questions = 0

    def _name(self, path: str) -> None:
        """An open document, and so its folders, exist even if they were never saved."""
        while path:
            folder, _, name = path.rpartition("/")
            self._open_names.setdefault(folder, set()).add(name)
            path = folder

    def uri(self, path: str) -> str:
        """Of a file whose code was given."""
        document = self._open.get(path)
        if document is None:
            known = self._files.files.get((self._root or "", path, self._language))
            document = known.documents[0] if known and known.documents else None
        return document.uri if document else ""

    def exists(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        if not name:
            return False
        if name in self._open_names.get(folder, ()):
            return True
        names = self._folder(folder)
        if names is not None:
            return name in names
        return self._ask(path) is not None

    def names(self, folder: str) -> Collection[str]:
        shown = self._folder(folder) or frozenset()
        opened = self._open_names.get(folder)
        return shown | opened if opened else shown

    def code(self, path: str) -> Code | None:
        if path == self._current:
            return None
        document = self._open.get(path)
        if document is not None:
            return self._opened(document)
        return self._stored(path) if self._root and self.exists(path) else None

    def _opened(self, document: DocumentSnapshot) -> Code | None:
        if self._ignored(document) or len(document.text) > LARGEST:
            return None
        kept = self._files.open.get(document.uri)
        if kept and kept[0] is document.text and kept[1] is self._language:
            return kept[2]
        if not self._may_read():
            return None
        self._bytes += len(document.text)
        code = Code(_normal(document.text.slice(0, len(document.text))), self._language)
        self._files.open[document.uri] = (document.text, self._language, code)
        return code

    def _stored(self, path: str) -> Code | None:
        key = (self._root or "", path, self._language)
        known = self._files.files.get(key)
        if known is None or self._now - known.checked > FRESH:
            known = self._looked(path, known)
            if known is None:
                return None
            _keep(self._files.files, key, known, _KEPT_FILES)
        if any(map(self._ignored, known.documents)):
            return None
        return known.code

    def _looked(self, path: str, known: _Known | None) -> _Known | None:
        """What is at a path now; None if there is no time to look."""
        stamp = self._ask(path)
        if known is not None and known.stamp is not None and stamp == known.stamp:
            known.checked = self._now
            return known
        if stamp is None:
            return _Known(self._now)
        real = self._inside(path)
        if real is None:
            return _Known(self._now)
        documents = self._documents(path, real)
        if any(map(self._ignored, documents)):
            return _Known(-math.inf, documents=documents)  # looked at again, as it may no longer be
        if not self._may_read():
            return None
        stamp, text = _read(real)
        self._bytes += stamp[1] if stamp else 0
        code = Code(_normal(text), self._language) if text is not None else None
        return _Known(self._now, stamp, code, documents)

    def _documents(self, path: str, real: str) -> tuple[DocumentSnapshot, ...]:
        root = self._root or ""
        whole = os.path.join(root, *path.split("/"))
        below = os.path.relpath(real, self._real_root).replace(os.sep, "/")
        found = [(whole, path)] if below == path else [(whole, path), (real, below)]
        empty = PlainText("")
        return tuple(DocumentSnapshot(Path(each).as_uri(), "", 0, empty, name, root) for each, name in found)

    def _may_read(self) -> bool:
        if self._read >= MOST_FILES or self._bytes >= MOST_BYTES or self._late():
            return False
        self._read += 1
        return True

    def _ask(self, path: str) -> _Stamp | None:
        """The stamp of a regular file that is not too large."""
        self._questions += 1
        if not self._root or self._questions > MOST_QUESTIONS or not _plain(path):
            return None
        try:
            found = os.stat(os.path.join(self._root, *path.split("/")))
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(found.st_mode) or found.st_size > LARGEST:
            return None
        return found.st_mtime_ns, found.st_size

    def _inside(self, path: str) -> str | None:
        """The path with links followed, if that is still in the workspace."""
        root = self._root or ""
        try:
            if self._real_root is None:
                self._real_root = os.path.realpath(root)
            real = os.path.realpath(os.path.join(root, *path.split("/")))
        except (OSError, ValueError):
            return None
        top = os.path.normcase(self._real_root).rstrip(os.sep)
        return real if (os.path.normcase(real) + os.sep).startswith(top + os.sep) else None

    def _folder(self, folder: str) -> frozenset[str] | None:
        """The names in a folder of the disk; None if they are too many."""
        if not self._root:
            return frozenset()
        key = (self._root, folder)
        known = self._files.folders.get(key)
        if known is not None and self._now - known.checked <= FRESH:
            return known.names
        parent, _, name = folder.rpartition("/")
        if folder and not _has(self._folder(parent), name):
            known = _Folder(self._now)
        elif self._late():
            return frozenset()
        else:
            known = self._listed(folder, known)
        _keep(self._files.folders, key, known, _KEPT_FOLDERS)
        return known.names

    def _listed(self, folder: str, known: _Folder | None) -> _Folder:
        self._questions += 1
        if self._questions > MOST_QUESTIONS or not _plain(folder or "."):
            return _Folder(self._now)
        real = self._inside(folder)
        if real is None:
            return _Folder(self._now)
        try:
            found = os.stat(real)
            stamp = (found.st_mtime_ns, 0)
            if known is not None and known.stamp == stamp:
                known.checked = self._now
                return known
            names: set[str] = set()
            with os.scandir(real) as entries:
                for entry in entries:
                    names.add(entry.name)
                    if len(names) > MOST_NAMES:
                        return _Folder(self._now, stamp, None)
        except (OSError, ValueError):
            return _Folder(self._now)
        return _Folder(self._now, stamp, frozenset(names))


def _has(names: frozenset[str] | None, name: str) -> bool:
    return names is None or name in names


def _plain(path: str) -> bool:
    """Whether a path cannot lead anywhere but down, on any system."""
    return not any(part == ".." for part in path.split("/")) and not any(each in path for each in "\\:\0")


def _keep(kept: OrderedDict[_K, _V], key: _K, value: _V, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def _read(path: str) -> tuple[_Stamp | None, str | None]:
    """The text of a regular file, None if it is none. Never blocks on a pipe or device, follows no link."""
    try:
        with open(path, "rb", opener=_opener) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return None, None
            data = file.read(LARGEST + 1)
    except (OSError, ValueError):
        return None, None
    stamp = (found.st_mtime_ns, found.st_size)
    if len(data) > LARGEST or b"\x00" in data:
        return stamp, None
    try:
        return stamp, data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return stamp, None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_NOFOLLOW")))


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
