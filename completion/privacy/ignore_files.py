"""Files of patterns that say which others are ignored, such as `.gitignore`. Read as git reads them.

Must not know settings. They come with a repository, so they are not trusted: whatever one holds, it costs a bounded
time, and where one cannot be used all in its folder is ignored.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from completion.privacy.pattern_file import Signature, Unusable, read, signature
from completion.privacy.patterns import Rules
from completion.privacy.user_ignores import user_ignores
from completion.types import DocumentSnapshot

_FRESH_S = 3.0  # how long nothing is looked at again, seconds
_FOLDERS = 1000  # whose files are kept
_ANSWERS = 2000  # that are kept
_ABOVE = 40  # folders above the workspace in which the top of its repository is looked for
_SLOWEST_S = 0.1  # for one document; patterns can be made to take long, though none alone takes that much

EXCLUDE = ".git/info/exclude"
_OWN = "your file of patterns for git"


@dataclass(slots=True)
class _File:
    """One file of patterns as it was read. `wrong` says why it cannot be used."""

    signature: Signature | None = None
    rules: Rules | None = None
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A document below the top of its repository, or of its workspace. The workspace begins behind `first` parts."""

    top: str
    parts: tuple[str, ...]
    first: int

    @property
    def folders(self) -> list[tuple[str, str]]:
        """All down to the document's own, each with the top."""
        return [(os.path.join(self.top, *self.parts[:depth]), self.top) for depth in range(len(self.parts))]


@dataclass(slots=True)
class _Answer:
    why: str
    place: _Place | None
    looked: float = 0
    generation: int = 0


@dataclass(slots=True)
class _Own:
    """The user's own patterns. Trusted, and therefore read wherever a link leads."""

    path: str
    looked: float = float("-inf")
    file: _File = field(default_factory=_File)


@dataclass(slots=True)
class _Folder:
    looked: float = float("-inf")  # when its files were last looked at, seconds of the clock
    files: dict[str, _File] = field(default_factory=dict)


class IgnoreFiles:
    """`names` are those of the files; of several kinds each is asked by itself. `clock` tells seconds."""

    def __init__(self, names: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._clock = clock
        self._folders: dict[str, _Folder] = {}
        self._tops: dict[str, tuple[float, str]] = {}
        self._answers: dict[tuple[str | None, str | None, str], _Answer] = {}
        self._generation = 0  # counts how often something was found changed
        self._own = _Own(user_ignores()) if ".gitignore" in self._names else None

    def why(self, document: DocumentSnapshot) -> str:
        """The rule that the document is ignored by, as the end of a sentence; nothing, if it is not."""
        if not self._names:
            return ""
        now = self._clock()
        key = (document.root, document.path, document.uri)
        known = self._answers.get(key)
        if known is not None and now - known.looked < _FRESH_S and known.generation == self._generation:
            return known.why
        place = self._place(document, now)
        folders = [self._folder(*each, now) for each in place.folders] if place is not None else []
        if self._own is not None and self._own.path and now - self._own.looked >= _FRESH_S:
            self._own.looked = now
            self._generation += _look(self._own.file, os.path.realpath(self._own.path), os.sep)
        if known is None or known.generation != self._generation or known.place != place:
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            known = self._answers[key] = _Answer(self._why(place, folders) if place is not None else "", place)
        known.looked, known.generation = now, self._generation
        return known.why

    def saved(self, uri: str) -> None:
        if posixpath.basename(unquote(uri)) in (*self._names, posixpath.basename(EXCLUDE)):
            self._answers.clear()
            self._folders.clear()
            self._tops.clear()

    def _place(self, document: DocumentSnapshot, now: float) -> _Place | None:
        """None, if it is in no workspace and no repository."""
        root, path = document.root, document.path
        if root is None or path is None:
            whole = _on_disk(document.uri)
            if whole is None:
                return None
            root = self._top(posixpath.dirname(whole), now)
            if not os.path.lexists(os.path.join(root, ".git")):
                return None
            path = posixpath.relpath(whole, _slashes(root))
        if "\0" in root + path:
            return None
        top = self._top(root, now)
        above = posixpath.relpath(_slashes(root), _slashes(top)) if top != root else ""
        higher, lower = [*filter(None, above.split("/"))], [*filter(None, path.split("/"))]
        return _Place(top, (*higher, *lower), len(higher))

    def _why(self, place: _Place, folders: Sequence[_Folder]) -> str:
        until = time.thread_time() + _SLOWEST_S
        try:
            for name in self._names:
                files = [folder.files[name] for folder in folders]
                last = [(folders[0].files[EXCLUDE], EXCLUDE)] if name == ".gitignore" else []
                if last and self._own is not None:
                    last.append((self._own.file, _OWN))
                if why := _decide(name, files, last, place, until):
                    return why
        except TimeoutError:
            return "its files of patterns take too long to read"
        return ""

    def _top(self, root: str, now: float) -> str:
        """The folder of the repository that `root` belongs to; `root` itself, if it belongs to none."""
        known = self._tops.get(root)
        if known is None or now - known[0] >= _FRESH_S:
            if len(self._tops) >= _FOLDERS:
                self._tops.clear()
            found = next((up for up in _upwards(root) if os.path.lexists(os.path.join(up, ".git"))), root)
            known = self._tops[root] = (now, found)
        return known[1]

    def _folder(self, path: str, top: str, now: float) -> _Folder:
        folder = self._folders.get(path)
        if folder is None:
            if len(self._folders) >= _FOLDERS:
                self._folders.clear()
            folder = self._folders[path] = _Folder()
        if now - folder.looked >= _FRESH_S:
            folder.looked = now
            for name in (*self._names, EXCLUDE):
                self._generation += _look(folder.files.setdefault(name, _File()), os.path.join(path, name), top)
        return folder


def _look(file: _File, path: str, top: str) -> bool:
    """Read it, if it is another one than last time; says so."""
    now = signature(path)
    if now == file.signature:
        return False
    file.signature, file.rules, file.wrong = now, None, ""
    if now is not None:
        try:
            file.rules = Rules(read(path, top))
        except Unusable as error:
            file.wrong = str(error)
    return True


def _decide(name: str, files: Sequence[_File], last: Sequence[tuple[_File, str]], place: _Place, until: float) -> str:
    """What the files of one name say, `files[n]` standing in the folder of the first n parts. Raises TimeoutError.

    If they say nothing those of `last` do, which count from the top, in this order.

    From the workspace's top on each folder is asked about, and then the file: what lies in an ignored folder is
    ignored. For each, the deepest file that says something decides.
    """
    parts = place.parts
    for end in range(place.first + 1, len(parts) + 1):
        folder = end < len(parts)
        asked = [
            *((files[depth], "/".join((*parts[:depth], name)), depth) for depth in range(end - 1, -1, -1)),
            *((file, called, 0) for file, called in last),
        ]
        for file, called, depth in asked:
            said = _said(file, called, "/".join(parts[depth:end]), folder, until)
            if said is not None:
                break
        if said:
            return said
    return ""


def _said(file: _File, place: str, path: str, folder: bool, until: float) -> str | None:
    """Why a path is ignored; nothing, if it is not to be; None, if the file does not say."""
    if file.wrong:
        return f"{place} {file.wrong}"
    found = file.rules.match(path, folder, until) if file.rules is not None else None
    if found is None:
        return None
    return f"it matches `{found.shown}`, line {found.line} of {place}" if found.ignores else ""


def _upwards(path: str) -> Iterator[str]:
    for _ in range(_ABOVE):
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


_FILE_URI = re.compile(r"(?:file|vscode-notebook-cell):(?://[^/?#]*)?(/[^?#]*)", re.DOTALL)


def _on_disk(uri: str) -> str | None:
    """The path of a document of no workspace, with `/`."""
    found = _FILE_URI.match(uri)
    if found is None:
        return None
    path = unquote(found[1], errors="surrogateescape")
    return path[1:] if re.match(r"/[A-Za-z]:", path) else path


def _slashes(path: str) -> str:
    return path.replace(os.sep, "/")
