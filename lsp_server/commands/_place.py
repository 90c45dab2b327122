"""Files and places in them as they stand on the command line. Knows nothing of settings or engines."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from completion.types import DocumentSnapshot, PlainText
from lsp_server.language_ids import language_id

_TARGET = re.compile(r"(.+):([0-9]{1,9}):([0-9]{1,9})", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\r|\n")
LIMIT = 64 << 20  # bytes of a file
_ROOT_MARKS = (".midfill.toml", ".git", ".hg", "pyproject.toml", "package.json", "Cargo.toml", "go.mod")


class UsageError(Exception):
    """What was asked for does not exist. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Target:
    """`line` and `column` count from 1, the column in characters."""

    path: Path
    line: int
    column: int


def parse_target(text: str) -> Target:
    """FILE:LINE:COL, where FILE may itself hold colons. Raises UsageError."""
    found = _TARGET.fullmatch(text)
    if not found:
        raise UsageError(f"{text!r} is not FILE:LINE:COL")
    return Target(Path(found[1]), int(found[2]), int(found[3]))


def read_text(path: Path) -> str:
    """Raises UsageError for what is missing, no regular file, too large, binary or not UTF-8.

    A byte order mark is not part of the text. Never blocks on a pipe or device.
    """
    try:
        before = path.stat()
        if not (stat.S_ISREG(before.st_mode) or stat.S_ISDIR(before.st_mode)):
            raise UsageError(f"{path} is not a regular file")
        with open(path, "rb", opener=_open) as file:
            data = file.read(LIMIT + 1) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b"\x00"
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"{path}: no file can have this name") from None
    if len(data) > LIMIT:
        raise UsageError(f"{path} is larger than {LIMIT >> 20} MiB")
    if b"\x00" in data:
        raise UsageError(f"{path} is a binary file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def offset_of(text: str, target: Target) -> int:
    """The code-point offset of a place. Raises UsageError saying what the file has."""
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    if not 1 <= target.line <= len(starts):
        raise UsageError(f"{target.path} has lines 1 to {len(starts)}, there is no line {target.line}")
    start = starts[target.line - 1]
    line_end = _LINE_END.search(text, start)
    columns = (line_end.start() if line_end else len(text)) - start + 1
    if not 1 <= target.column <= columns:
        raise UsageError(f"line {target.line} of {target.path} has columns 1 to {columns}, not {target.column}")
    return start + target.column - 1


def place_of(text: str, offset: int) -> dict[str, int]:
    """Line and column of an offset, both from 1."""
    line, start = 1, 0
    for end in _LINE_END.finditer(text, 0):
        if end.end() > offset:
            break
        line, start = line + 1, end.end()
    return {"line": line, "column": offset - start + 1}


def root_of(path: Path) -> Path:
    """The nearest folder above a file that looks like the top of a project; else the file's own folder."""
    folder = path.resolve().parent
    return next((up for up in (folder, *folder.parents) if any((up / mark).exists() for mark in _ROOT_MARKS)), folder)


def snapshot(path: Path, text: str, root: Path, ignored: Callable[[DocumentSnapshot], bool]) -> DocumentSnapshot:
    """A file as if an editor had opened it. Of a link to it, the name is told if it is `ignored`."""
    link = _snapshot(Path(os.path.abspath(path)), text, root)
    return link if ignored(link) else _snapshot(path.resolve(), text, root)


def _snapshot(whole: Path, text: str, root: Path) -> DocumentSnapshot:
    relative = whole.relative_to(root).as_posix() if whole.is_relative_to(root) else None
    folder = None if relative is None else str(root)
    return DocumentSnapshot(whole.as_uri(), language_id(whole.name), 0, PlainText(text), relative, folder)
