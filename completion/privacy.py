"""What may not leave the machine: ignored files, and keys inside text. Must not know where text goes."""

from __future__ import annotations

import fnmatch
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from urllib.parse import unquote

from completion.types import DocumentSnapshot

_FILLER = "x"

_KEY_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"

# The shapes services document for their keys, each after a text without which it cannot occur. Group 1 is blanked. None
# looks far ahead or back without matching: the time for a text grows with its length alone, whatever it holds.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("PRIVATE KEY", re.compile(rf"{_KEY_BEGIN}((?s:.*?))(?:{_KEY_END}|\Z)")),
    ("IA", re.compile(r"\b(A[KS]IA[0-9A-Z]{16})\b")),
    ("gh", re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{30,})")),
    ("github_pat_", re.compile(r"\b(github_pat_[A-Za-z0-9_]{30,})")),
    ("sk-", re.compile(r"\b(sk-(?=[A-Za-z0-9_-]{0,100}[0-9])[A-Za-z0-9_-]{20,})")),
    ("xox", re.compile(r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,})")),
    ("eyJ", re.compile(r"\b(eyJ[A-Za-z0-9_-]{8,1000}+\.eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*)")),
)

# A name that says what it holds, then a text. The closing quote may be missing, as the user is typing it; `: str` is a
# type. The names are looked for by themselves first, which is much quicker.
_NAMES = ("password", "passwd", "secret", "token", "api_key", "api-key", "apikey")
_NAMED = re.compile(
    rf"(?:{'|'.join(_NAMES)})[\w-]{{0,64}}+[\"']?(?:[ \t]*:[ \t]*\w++)?[ \t]*(?:=>|:=|[:=])[ \t]*[a-z]{{0,2}}"
    r"(?:\"([^\"\n\r]{12,})|'([^'\n\r]{12,}))",
    re.IGNORECASE,
)

# The end of a private key whose beginning is out of sight.
_HEADLESS = re.compile(rf"\A((?:(?!{_KEY_BEGIN})(?s:.))*?){_KEY_END}")


def redact(text: str) -> str:
    """`text` with what looks like a key blanked by a filler of the same length; line ends stay."""
    if "PRIVATE KEY" in text:
        text = _HEADLESS.sub(_blank, text)
    for needed, shape in _SHAPES:
        if needed in text:
            text = shape.sub(_blank, text)
    parts: list[str] = []
    end = 0
    for at in sorted(_places(text)):
        named = _NAMED.match(text, at) if at >= end else None
        if named:
            parts += (text[end:at], _blank(named))
            end = named.end()
    return "".join((*parts, text[end:]))


def _places(text: str) -> list[int]:
    """Where one of the names may begin."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capital letters become two
        return [match.start() for match in _NAMED.finditer(text)]
    places = []
    for name in _NAMES:
        at = lowered.find(name)
        while at >= 0:
            places.append(at)
            at = lowered.find(name, at + 1)
    return places


def _blank(match: re.Match[str]) -> str:
    group = match.lastindex or 0
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    whole = match[0]
    return whole[:start] + re.sub(r"[^\r\n]", _FILLER, whole[start:end]) + whole[end:]


_REMEMBERED = 1000  # documents whose answer is kept


class Ignored:
    """Which documents are never read: those whose name or path matches one of the globs. Case does not matter.

    `*` and `?` match `/` too, `[…]` one of several characters, and `/**/` also a single `/`. Beyond that a glob

    - without `/` matches the file's name, or its whole path in the workspace,
    - with `/` matches the end of the file's whole path, from the beginning of any name in it; what is a folder stands
      for all in it, and a glob that ends in `/` for that alone,
    - that begins with `/` matches from the top of the workspace on, or of the file system; `~/` is the home directory.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        names: list[str] = []
        paths: list[str] = []
        tops: list[str] = []
        absolute: list[str] = []
        for glob in filter(None, map(_normal, globs)):
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
        self._known: dict[tuple[str, str | None], bool] = {}

    def __call__(self, document: DocumentSnapshot) -> bool:
        key = (document.uri, document.path)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._named(*key)
        return known

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
