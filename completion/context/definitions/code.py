"""Text of one file, and what a family of languages can say about it. Must not know files, documents or prompts.

Everything is by patterns, none of which looks far ahead or back without moving on: the time for a text grows with its
length alone, whatever it holds.
"""

from __future__ import annotations

import enum
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Protocol

WIDEST = 300  # code points of a line that is shown: what is wider was not written by hand
MOST_LINES = 40  # of one definition
ALL = "*"  # the member that stands for all of a module's

# Strings and comments as many languages write them, each begun by one character: the search for them is quick then.
TO_LINE_END = r"//[^\n]*+"
BLOCK_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)"
DOUBLE = r'"(?:[^"\\\n]++|\\(?s:.))*+"?'
SINGLE = r"'(?:[^'\\\n]++|\\(?s:.))*+'?"
CHARACTER = r"'(?:[^'\\\n]|\\[^\n][^'\n]{0,8}+)'"  # and no lifetime of Rust
BACKTICK = r"`(?:[^`\\]++|\\(?s:.))*+(?:`|\Z)"
_WORD = re.compile(r"[^\W\d]\w*+")
_MOST_TYPES = 3  # of one header
_MOST_SPOTS = 16  # of one name: methods, overloads
_NO_LINE_END = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Import:
    """A statement lets `name` stand for `member` of `module`; for the module itself where `member` is empty.

    `member` may be `ALL`: then `name` is empty.
    """

    module: str
    member: str
    name: str


@dataclass(frozen=True, slots=True)
class Target:
    """Where an import may lead: `member` (or all, or the file itself, as in `Import`) of the first of `paths`.

    Paths are relative to the workspace's root, with `/`. `together`: what they hold is one, as in a package of Go.
    """

    paths: tuple[str, ...]
    member: str
    together: bool = False


class Kind(enum.Enum):
    HEADER = "header"  # what has a body that is not shown
    BLOCK = "block"  # what has members whose headers are shown
    DATA = "data"  # what has members without bodies
    VALUE = "value"  # what is shown as it stands, if it is short


@dataclass(frozen=True, slots=True)
class Spot:
    """Where something that has a name begins: an offset in the text."""

    at: int
    kind: Kind


Index = dict[str, list[Spot]]


class Tree(Protocol):
    """The files that may be seen. Paths are relative to the root; "" is the root itself."""

    def exists(self, path: str) -> bool: ...

    def names(self, folder: str) -> Collection[str]:
        """What stands in a folder; nothing if there is no such folder."""

    def code(self, path: str) -> Code | None:
        """None for what is not there, cannot be read, or not now."""


@dataclass(frozen=True, slots=True)
class Language:
    """What differs between families. `noise` matches strings and comments, `statement` an import of any form."""

    noise: re.Pattern[str]
    statement: re.Pattern[str]
    imports: Callable[[Code], Iterable[Import]]
    targets: Callable[[Import, str, Tree], Iterable[Target]]  # an import, and the path of the file where it stands
    index: Callable[[Code], Index]
    lines: Callable[[Code, Spot], Sequence[int]]
    # What is seen without a statement: of a file with this path, which uses these names.
    unnamed: Callable[[str, Collection[str]], Iterable[Import]] = lambda _path, _names: ()


@dataclass(frozen=True, slots=True)
class Definition:
    """Whole lines of a file, in their order, and where they stand: first, one past the last; `head` names the thing."""

    name: str
    text: str
    lines: tuple[int, int]
    head: str


class Code:
    """A text with line ends `\\n`, and what it says, each worked out when first asked for."""

    def __init__(self, text: str, language: Language) -> None:
        self.text = text
        self.language = language
        self._definitions: dict[str, Definition | None] = {}

    @cached_property
    def bare(self) -> str:
        """The text with blanks for what stands in strings and comments. The quotes stay, and so does every line end."""
        return self.language.noise.sub(_blank, self.text)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def starts(self) -> list[int]:
        """Offsets of the lines."""
        ends = accumulate(map(len, self.lines[:-1]))
        return [0, *map(operator.add, ends, range(1, len(self.lines)))]

    @cached_property
    def index(self) -> Mapping[str, Sequence[Spot]]:
        return self.language.index(self)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self.language.imports(self))

    def place(self, name: str) -> int:
        """Where what the index has under `name` begins."""
        return self.index[name][0].at

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def bare_line(self, number: int) -> str:
        start = self.starts[number]
        return self.bare[start : start + len(self.lines[number])]

    def define(self, name: str) -> Definition | None:
        """The definition of `name`, if there is one fit to be shown."""
        if name not in self._definitions:
            self._definitions[name] = self._define(name)
        return self._definitions[name]

    def types_of(self, definition: Definition) -> list[Definition]:
        """The types of this text that a function's header names: what it gives is likely to be used next."""
        if any(spot.kind is not Kind.HEADER for spot in self.index.get(definition.name, ())):
            return []
        names = dict.fromkeys(_WORD.findall(definition.text))
        types = [name for name in names if name in self.index and self.index[name][0].kind in (Kind.BLOCK, Kind.DATA)]
        return [found for found in map(self.define, types[:_MOST_TYPES]) if found is not None]

    def _define(self, name: str) -> Definition | None:
        spots = self.index.get(name)
        if not spots:
            return None
        kept: list[int] = []
        for spot in spots[:_MOST_SPOTS]:
            kept += self.language.lines(self, spot)
            if len(kept) >= MOST_LINES:
                break
        numbers = sorted(set(kept))[:MOST_LINES]
        if not numbers or any(len(self.lines[number]) > WIDEST for number in numbers):
            return None
        text = "".join(f"{self.lines[number]}\n" for number in numbers)
        return Definition(name, text, (numbers[0], numbers[-1] + 1), self.lines[self.line_of(spots[0].at)])


def _blank(match: re.Match[str]) -> str:
    whole = match[0]
    first = whole[0] if whole[0] in "\"'`" else " "
    if len(whole) == 1:
        return first
    last = whole[-1] if whole[-1] in (first, "\n") else " "
    inner = whole[1:-1]
    return f"{first}{_NO_LINE_END.sub(' ', inner) if chr(10) in inner else ' ' * len(inner)}{last}"


def add(index: Index, name: str, at: int, kind: Kind) -> None:
    index.setdefault(name, []).append(Spot(at, kind))


def joined(folder: str, relative: str) -> str | None:
    """`relative` seen from `folder`, without `.` and `..`; None if it leads out of the root."""
    parts = folder.split("/") if folder else []
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def upward(folder: str) -> list[str]:
    """A folder and those above it, up to the root."""
    found = [folder]
    while folder:
        folder = folder_of(folder)
        found.append(folder)
    return found
