"""The lines of one file of patterns, matched with the library pathspec. Must not know where the file is."""

from __future__ import annotations

import re
import sys
import time
import unicodedata
from dataclasses import dataclass

from completion.privacy.pattern_file import Unusable

_MOST = 2000  # patterns of a file; compiling one takes some 0.1 ms
_LONGEST = 1000  # code points of a pattern
_STARS = 3  # in one name of a pattern: a regular expression's time grows with the length of a name to their power
_DEEP = 3  # `**` in a pattern
_SHOWN = 60  # code points of a pattern in a message

# Where the systems' own file systems take both for the same.
_CASE = re.IGNORECASE if sys.platform in ("win32", "darwin") else re.NOFLAG


@dataclass(slots=True)
class Rule:
    line: int  # from 1
    text: str
    ignores: bool
    folders: bool  # matches these only, as the library's expression for such patterns says nothing of the name
    regex: str
    compiled: re.Pattern[str] | None = None

    @property
    def shown(self) -> str:
        text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in self.text[:_SHOWN])
        return text if len(self.text) <= _SHOWN else text + "…"

    def matches(self, path: str) -> bool:
        if self.folders:
            return path.endswith("/")
        if self.compiled is None:
            self.compiled = re.compile(self.regex, _CASE | re.DOTALL)
        return self.compiled.fullmatch(path) is not None


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

        `until` is in seconds of time.perf_counter.
        """
        path = _composed(path) + "/" * folder
        for rule in self._rules:
            if rule.matches(path):
                return rule
            if time.perf_counter() > until:
                raise TimeoutError
        return None


def _rule(number: int, line: str) -> Rule | None:
    from pathspec.patterns.gitignore import GitIgnorePatternError  # only where there are such files
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    text = line if line.endswith("\\ ") else line.rstrip(" \t\n\r\f\v")
    if not text or text.startswith("#"):
        return None
    pattern = _bounded(_composed(text))
    if pattern is None:
        return None
    try:
        regex, ignores = GitIgnoreSpecPattern.pattern_to_regex(pattern)
    except GitIgnorePatternError:
        return None  # git passes over these, too
    if regex is None or ignores is None:
        return None
    # The library's expressions are to be looked for in a path; here each name on the way to it is asked about alone.
    bare = regex in ("/", "(?P<ps_d>/)")
    if regex == ".":
        regex = ".+"
    elif pattern.endswith("/**"):
        regex += ".+"
    return Rule(number, text, ignores, bare, regex)


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


def _composed(text: str) -> str:
    """Some systems take accents off their letters in the names of files."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)
