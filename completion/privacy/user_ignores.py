"""The user's own patterns for all repositories, which git's `core.excludesFile` names. Must not know any repository."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from completion.privacy.pattern_file import Unusable, read

_SECTION = re.compile(r'\[\s*(?P<name>[A-Za-z0-9.-]+)\s*(?P<sub>"[^"]*")?\s*\]')
_EXCLUDES = re.compile(r"excludesfile\s*=\s*(?P<value>.*)", re.IGNORECASE)
# Of a value: text in quotes, an escaped character, anything else up to a comment.
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|\\(.)|([^#;"\\]+)')
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


def user_ignores() -> str:
    """The path of that file, which need not exist; nothing, where there is no home.

    Git's rules, gitignore(5) and git-config(1): the last value counts; only the user's files, and without `include`.
    """
    path = ""
    for file in _config_files():
        try:
            text = read(os.path.realpath(file), os.sep)
        except Unusable:
            continue
        for value in _values(text):
            path = os.path.expanduser(value)
    path = path or os.path.join(_config_home(), "git", "ignore")
    return path if os.path.isabs(path) else ""


def _config_files() -> list[str]:
    if chosen := os.environ.get("GIT_CONFIG_GLOBAL"):
        return [chosen]
    return [os.path.join(_config_home(), "git", "config"), os.path.expanduser(os.path.join("~", ".gitconfig"))]


def _config_home() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser(os.path.join("~", ".config"))


def _values(text: str) -> Iterator[str]:
    core = False
    for line in text.replace("\r\n", "\n").split("\n"):
        line = line.strip()
        section = _SECTION.match(line)
        if section is not None:
            core = section["name"].lower() == "core" and section["sub"] is None
            line = line[section.end() :].strip()
        found = _EXCLUDES.match(line) if core else None
        if found is not None:
            yield _unquoted(found["value"])


def _unquoted(value: str) -> str:
    parts, at = [], 0
    while (found := _VALUE.match(value, at)) is not None:
        quoted, escaped, plain = found.groups()
        if quoted is not None:
            parts.append(re.sub(r"\\(.)", lambda m: _ESCAPED.get(m[1], m[1]), quoted))
        else:
            parts.append(_ESCAPED.get(escaped, escaped) if escaped else plain)
        at = found.end()
    return "".join(parts).strip()
