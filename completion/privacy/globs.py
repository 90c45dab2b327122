"""Patterns for the names and paths of documents. Must not know what they are for."""

from __future__ import annotations

import fnmatch
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

from completion.types import DocumentSnapshot


class Globs:
    """Which of the globs the name or the path of a document matches. Case does not matter.

    `*` and `?` match `/` too, `[…]` one of several characters, and `/**/` also a single `/`. Beyond that a glob

    - without `/` matches the file's name, or its whole path in the workspace,
    - with `/` matches the end of the file's whole path, from the beginning of any name in it; what is a folder stands
      for all in it, and a glob that ends in `/` for that alone,
    - that begins with `/` matches from the top of the workspace on, or of the file system; `~/` is the home directory.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = tuple(globs)
        names: list[str] = []
        paths: list[str] = []
        tops: list[str] = []
        absolute: list[str] = []
        for glob in filter(None, map(_normal, self._globs)):
            if glob.startswith("/"):
                tops += _with_folder(glob[1:])
                absolute += _with_folder(glob)
            elif "/" in glob:
                paths += _with_folder(glob)
            else:
                names.append(fnmatch.translate(glob))
        self._name = _any(names)
        self._path = _any(paths, before=_ANY_PARENT)
        self._top = _any(tops)
        self._unplaced = _any(tops, before=_ANY_PARENT)  # of a file of no workspace: it is not known where the top is
        self._absolute = _any(absolute, before=_SCHEME)

    def match(self, document: DocumentSnapshot) -> str:
        """The first glob that matches; nothing, if none does."""
        if not self._named(document.uri, document.path):
            return ""
        if len(self._globs) == 1:
            return self._globs[0]
        return next((glob for glob in self._globs if Globs((glob,)).match(document)), self._globs[0])

    def _named(self, uri: str, path: str | None) -> bool:
        path = None if path is None else _composed(path)
        uri = uri.partition("#")[0]
        return any(self._ignores(_location(each), path) for each in dict.fromkeys((uri, uri.partition("?")[0])))

    def _ignores(self, location: str, path: str | None) -> bool:
        name = re.split("[/:]", location)[-1]
        if self._name(name) or self._path(location) or self._absolute(location):
            return True
        if path is None:
            return self._unplaced(location)
        return self._name(path) or self._name(path.rpartition("/")[2]) or self._path(path) or self._top(path)


_ANY_PARENT = "(?s:.*[/:])?"
_SCHEME = "[A-Za-z][A-Za-z0-9+.-]*:"
_DEEPEST = 3  # times `/**/` is read in full in one glob; then as `/*`, which matches more


def _normal(glob: str) -> str:
    glob = _composed(glob.strip().replace("\\", "/"))
    if glob.startswith("~/"):
        glob = os.path.expanduser(glob).replace("\\", "/")
    while glob.startswith(("./", "**/")):
        glob = glob.partition("/")[2]
    glob = glob.removesuffix("**") if glob.endswith("/**") else glob
    return f"{glob}*" if glob.endswith("/") else glob


def _with_folder(glob: str) -> list[str]:
    return [fnmatch.translate(each) for whole in (glob, f"{glob}/*") for each in _spellings(whole, _DEEPEST)]


def _spellings(glob: str, deepest: int) -> Iterator[str]:
    """What a glob with `/**/` stands for, in globs without: regular expressions would take their time over these."""
    before, deeper, after = glob.partition("/**/")
    if not deeper:
        yield glob
    elif not deepest:
        yield glob.replace("/**/", "/*")
    else:
        for rest in _spellings(after, deepest - 1):
            yield from (f"{before}/{rest}", f"{before}/*/{rest}")


def _any(patterns: Sequence[str], before: str = "") -> Callable[[str], bool]:
    if not patterns:
        return lambda _: False
    compiled = re.compile(f"{before}(?:{'|'.join(patterns)})", re.IGNORECASE)
    return lambda text: compiled.match(text) is not None


def _location(uri: str) -> str:
    """A URI without escapes, with single slashes."""
    return re.sub(r"/(?:\.?/)+", "/", _composed(unquote(uri)).replace("\\", "/"))


def _composed(text: str) -> str:
    """Some systems take accents off their letters in the names of files."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
