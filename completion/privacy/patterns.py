"""The lines of one file of patterns, matched with the library pathspec. Must not know where the file is."""

from __future__ import annotations

import re
import sys
import time
import unicodedata
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from completion.privacy.pattern_file import Unusable

_MOST = 2000  # patterns of a file; compiling one takes some 0.1 ms
_LONGEST = 1000  # code points of a pattern
_STARS = 3  # in one name of a pattern: a regular expression's time grows with the length of a name to their power
_DEEP = 3  # `**` in a pattern
_SHOWN = 60  # code points of a pattern in a message

# Where the systems' own file systems take both for the same.
_CASE = re.IGNORECASE if sys.platform in ("win32", "darwin") else re.NOFLAG


# Those of the C locale; the library does not know them.
_CLASSES = {
    "[:alnum:]": "A-Za-z0-9",
    "[:alpha:]": "A-Za-z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
    "[:space:]": " \t",
    "[:blank:]": " \t",
}
_CLASS = re.compile("|".join(map(re.escape, _CLASSES)))

_WILD = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]?|[*?/!]+")


@dataclass(slots=True)
class Rule:
    """One pattern. Its expression is made when it may match for the first time: that takes some 0.1 ms."""

    line: int  # from 1
    text: str
    pattern: str  # as it is used: of bounded cost
    ignores: bool
    needle: str  # without which no path matches
    compiled: Callable[[str], object] | None = None

    @property
    def shown(self) -> str:
        text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in self.text[:_SHOWN])
        return text if len(self.text) <= _SHOWN else text + "…"

    def matches(self, path: str, folded: str) -> bool:
        if self.needle not in folded:
            return False
        if self.compiled is None:
            self.compiled = _compiled(self.pattern)
        return bool(self.compiled(path))


def _compiled(pattern: str) -> Callable[[str], object]:
    """Tells whether a path matches as a whole, without the way to it: each name on it is asked about alone."""
    from pathspec.patterns.gitignore import GitIgnorePatternError  # takes 20 ms, and few patterns get here
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        regex, ignores = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    except GitIgnorePatternError:
        regex, ignores = None, None
    if regex is None or ignores is None:
        return lambda _: False  # git passes over these, too
    # The library's expressions are to be looked for in a path.
    if regex == ".":
        return bool
    if regex in ("/", "(?P<ps_d>/)"):
        return lambda path: path.endswith("/")
    if pattern.endswith("/**"):
        regex += ".+"
    elif pattern.endswith("/**/"):
        regex += ".+/"
    with warnings.catch_warnings():  # it wonders about sets such as `[[a]`
        warnings.simplefilter("ignore", FutureWarning)
        return re.compile(regex, _CASE | re.DOTALL).fullmatch


class Rules:
    """Raises Unusable for more than 2,000 patterns."""

    def __init__(self, text: str) -> None:
        self._rules: list[Rule] = []
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
            rule = _rule(number, line)
            if rule is not None:
                self._rules.append(rule)
            if len(self._rules) > _MOST:
                raise Unusable(f"has more than {_MOST} patterns")
        self._rules.reverse()  # the last one that matches decides

    def match(self, path: str, folder: bool, until: float) -> Rule | None:
        """The pattern that decides about a path below the file's folder. Raises TimeoutError.

        `until` is in seconds of time.thread_time: a busy machine makes no pattern slow.
        """
        path = _composed(path) + "/" * folder
        folded = _folded(path)
        for rule in self._rules:
            if rule.matches(path, folded):
                return rule
            if rule.compiled is not None and time.thread_time() > until:
                raise TimeoutError
        return None


def _rule(number: int, line: str) -> Rule | None:
    line = line.partition("\0")[0]  # git reads no farther
    text = line if line.endswith("\\ ") else line.rstrip(" \t\n\r\f\v")
    if not text or text.startswith("#"):
        return None
    pattern = _bounded(_CLASS.sub(lambda found: _CLASSES[found[0]], _composed(text)))
    if pattern is None:
        return None
    needle = max(_WILD.split(pattern), key=len)
    return Rule(number, text, pattern, not text.startswith("!"), _folded(needle))


def _bounded(pattern: str) -> str | None:
    """A pattern whose regular expression cannot take long; it may match more. None: an exception that would."""
    if len(pattern) <= _LONGEST:
        names = pattern.split("/")
        if names.count("**") <= _DEEP and all(len(re.findall(r"\*+", name)) <= _STARS for name in names):
            return pattern
    if pattern.startswith("!"):
        return None
    taken: list[str] = []
    for name in pattern[:_LONGEST].split("/"):
        if name == "**" and taken.count("**") == _DEEP - 1:
            return "/".join((*taken, "**"))
        stars = [match.end() for match in re.finditer(r"\*+", name)]
        taken.append(name[: stars[_STARS - 1]] if len(stars) > _STARS else name)
    return "/".join(taken) if len(pattern) <= _LONGEST else "/".join((*taken[:-1], "**"))


def _folded(text: str) -> str:
    return text.lower() if _CASE else text


def _composed(text: str) -> str:
    """Some systems take accents off their letters in the names of files."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
