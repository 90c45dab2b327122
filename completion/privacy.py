"""What may not leave the machine: ignored files, and keys inside text. Must not know where text goes."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from urllib.parse import unquote

from completion.types import DocumentSnapshot

_FILLER = "x"

_KEY_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"

# The shapes services document for their keys, each after a text without which it cannot occur. Group 1 is blanked.
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("PRIVATE KEY", re.compile(rf"{_KEY_BEGIN}((?s:.*?))(?:{_KEY_END}|\Z)")),
    ("IA", re.compile(r"\b(A[KS]IA[0-9A-Z]{16})\b")),
    ("gh", re.compile(r"\b(gh[pousr]_[A-Za-z0-9]{30,})")),
    ("github_pat_", re.compile(r"\b(github_pat_[A-Za-z0-9_]{30,})")),
    ("sk-", re.compile(r"\b(sk-(?=[A-Za-z0-9_-]*[0-9])[A-Za-z0-9_-]{20,})")),
    ("xox", re.compile(r"\b(xox[abeoprs]-[A-Za-z0-9-]{10,})")),
    ("eyJ", re.compile(r"\b(eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)")),
)

# A name that says what it holds, then a text. The closing quote may be missing, as the user is typing it; `: str` is a
# type. The names are looked for by themselves first, which is much quicker.
_NAMES = ("password", "passwd", "secret", "token", "api_key", "api-key", "apikey")
_NAMED = re.compile(
    rf"(?:{'|'.join(_NAMES)})[\w-]*[\"']?(?:[ \t]*:[ \t]*\w+)?[ \t]*(?:=>|:=|[:=])[ \t]*[a-z]{{0,2}}"
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
    for at in _places(text):
        named = _NAMED.match(text, at)
        if named:
            text = text[:at] + _blank(named) + text[named.end() :]
    return text


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
    """Which documents are never read. Globs match the file's name or its path in the workspace; case does not matter.

    `*` matches `/` too, a leading `**/` also matches nothing, and a pattern ending in `/` means all below.
    """

    def __init__(self, globs: Iterable[str]) -> None:
        patterns = [fnmatch.translate(glob) for given in globs for glob in _spellings(given)]
        self._pattern = re.compile("|".join(patterns), re.IGNORECASE) if patterns else None
        self._known: dict[tuple[str, str | None], bool] = {}  # asked at every key, for every open document

    def __call__(self, document: DocumentSnapshot) -> bool:
        key = (document.uri, document.path)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[key] = self._matches(document)
        return known

    def _matches(self, document: DocumentSnapshot) -> bool:
        if self._pattern is None:
            return False
        path = document.path or ""
        opened = unquote(document.uri.partition("#")[0])
        names = (path, path.rpartition("/")[2], re.split(r"[/\\:]", opened)[-1])
        return any(name and self._pattern.match(name) for name in names)


def _spellings(glob: str) -> tuple[str, ...]:
    glob = glob.replace("\\", "/").removeprefix("./")
    if glob.endswith("/"):
        glob += "*"
        return (glob, f"*/{glob}")
    if glob.startswith("**/"):
        return (glob, glob.removeprefix("**/"))
    return (glob,)
