"""C and C++: what is included, where it stands, declarations. Must not know how files are read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from completion.context.definitions.braces import outline
from completion.context.definitions.code import (
    ALL,
    BLOCK_COMMENT,
    CHARACTER,
    DOUBLE,
    TO_LINE_END,
    Code,
    Import,
    Index,
    Kind,
    Language,
    Spot,
    Target,
    Tree,
    add,
    folder_of,
    joined,
    upward,
)

_NOISE = re.compile(f"{TO_LINE_END}|{BLOCK_COMMENT}|{DOUBLE}|{CHARACTER}")
_STATEMENT = re.compile(r"^[ \t]*+#[ \t]*+(?:include|import)[ \t]*+(?:\"([^\"\n]*+)\"|<([^>\n]*+)>)", re.MULTILINE)
_HEAD = re.compile(
    r"^[ \t]*+(?:#[ \t]*+define[ \t]++(\w++)"
    r"|(typedef[ \t]++)?+(?:struct|class|union|enum(?:[ \t]++(?:class|struct))?+)\b((?:[^\n;{}()=]|\n(?!\n))*+)([{(])?+"
    r"|(?:template[ \t]*+<[^\n;{}]*+>[ \t]*+)?+using[ \t]++(\w++)[ \t]*+=)"
    r"|^(typedef)\b([^;{}]*+);"
    r"|^\}[ \t]*+(\w++)[ \t]*+;"
    r"|^([A-Za-z_~][^\n(;={}#]*+)([(=])",
    re.MULTILINE,
)
_WORD = re.compile(r"\w+")
_NO_DECLARATION = re.compile(r"(?:return|if|else|for|while|switch|case|delete|throw|do|goto|namespace|static_assert)\b")
_NO_NAMES = frozenset({"__attribute__", "__declspec", "alignas", "decltype", "operator"})
_POINTED = re.compile(r"\([ \t]*+\*[ \t]*+(\w++)")
_CONSTANT = re.compile(r"\b(?:const|constexpr)\b")
_FOLDERS = ("include", "inc", "src", "lib")
_MOST_MACRO = 4  # lines


def _imports(code: Code) -> Iterator[Import]:
    for found in _STATEMENT.finditer(code.bare):
        group = 1 if found[1] is not None else 2
        yield Import(code.text[found.start(group) : found.end(group)], ALL, "")


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    """Beside the file, then from the folders above it and what they include from."""
    written = found.module.replace("\\", "/")
    name = written.rpartition("/")[2]
    for up in upward(folder_of(path)):
        for base in (up, *(f"{up}/{each}".lstrip("/") for each in _FOLDERS if each in tree.names(up))):
            place = joined(base, written)
            if place and name in tree.names(folder_of(place)):
                yield Target((place,), ALL)
                return


def _index(code: Code) -> Index:
    index: Index = {}
    unnamed: int | None = None  # where the type begins whose name stands behind its members
    for found in _HEAD.finditer(code.bare):
        macro, typedef, tag, opener, alias, defined, what, closed, declared, mark = found.groups()
        at = found.start()
        if macro or alias:
            add(index, macro or alias, at, Kind.VALUE)
        elif tag is not None:
            if opener == "{":
                unnamed = at if typedef else None
            _tagged(index, found)
        elif defined:
            pointed = _POINTED.search(what)
            words = _WORD.findall(what)
            if pointed or words:
                add(index, pointed[1] if pointed else words[-1], at, Kind.VALUE)
        elif closed:
            if unnamed is not None:
                index.setdefault(closed, [Spot(unnamed, Kind.BLOCK)])
            unnamed = None
        elif declared:
            _declare(index, declared, mark, at)
    return index


def _tagged(index: Index, found: re.Match[str]) -> None:
    typedef, tag, opener = found.group(2, 3, 4)
    words = _WORD.findall(tag)
    name = _tag(tag)
    if opener == "(":  # a function that gives one
        _declare(index, f"struct {tag}", opener, found.start())
    elif opener and name:
        add(index, name, found.start(), Kind.BLOCK)
    elif not opener and typedef and words:
        index.setdefault(words[-1], [Spot(found.start(), Kind.VALUE)])


def _tag(text: str) -> str:
    """`EXPORT Name final : public Base` → `Name`."""
    words = [word for word in _WORD.findall(text.partition(":")[0].partition("<")[0]) if word != "final"]
    return words[-1] if words else ""


def _declare(index: Index, declared: str, mark: str, at: int) -> None:
    if _NO_DECLARATION.match(declared):
        return
    words = _WORD.findall(declared)
    if len(words) < 2 or words[-1] in _NO_NAMES or not declared.rstrip().endswith(words[-1]):
        return
    if mark == "(":
        add(index, words[-1], at, Kind.HEADER)
    elif _CONSTANT.search(declared):
        add(index, words[-1], at, Kind.VALUE)


def _lines(code: Code, spot: Spot) -> list[int]:
    first = code.line_of(spot.at)
    if not code.lines[first].lstrip().startswith("#"):
        return outline(code, spot)
    last = first
    while code.lines[last].endswith("\\") and last + 1 < len(code.lines) and last - first < _MOST_MACRO - 1:
        last += 1
    return list(range(first, last + 1))


C = Language(noise=_NOISE, statement=_STATEMENT, imports=_imports, targets=_targets, index=_index, lines=_lines)
