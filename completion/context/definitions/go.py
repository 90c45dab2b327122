"""Go: imports, where they lead, definitions. Must not know how files are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

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
    Target,
    Tree,
    add,
    folder_of,
    upward,
)

_NOISE = re.compile(rf"{TO_LINE_END}|{BLOCK_COMMENT}|{DOUBLE}|{CHARACTER}|`[^`]*+(?:`|\Z)")
_STATEMENT = re.compile(r"^import\b[ \t]*+(?:\(([^()=]*+)|([\w.]*+)[ \t]*+\"([^\"\n]*+)\")", re.MULTILINE)
_ONE = re.compile(r"^[ \t]*+([\w.]*+)[ \t]*+[\"`]([^\"`\n]*+)[\"`]", re.MULTILINE)
_MODULE = re.compile(r"^module[ \t]++\"?([^\s\"]++)", re.MULTILINE)
_VERSION = re.compile(r"v[0-9]+")
_HEAD = re.compile(
    r"^(?:func[ \t]++(?:\([ \t]*+(?:\w++[ \t]++)?+\*?+(\w++)[^()\n]*+\)[ \t]*+)?+(\w++)"
    r"|(type|const|var)[ \t]++(\w++)|(type|const|var)[ \t]*+\()",
    re.MULTILINE,
)
_GROUPED = re.compile(r"^\t(\w++)", re.MULTILINE)
_MOST_FILES = 16  # of a package
_HERE = "."


def _imports(code: Code) -> Iterator[Import]:
    for found in _STATEMENT.finditer(code.bare):
        if found[1] is not None:
            inside = code.text[found.start(1) : found.end(1)]
            yield from (_import(each[1], each[2]) for each in _ONE.finditer(inside))
        else:
            yield _import(found[2], code.text[found.start(3) : found.end(3)])


def _import(alias: str, module: str) -> Import:
    if alias == ".":
        return Import(module, ALL, "")
    parts = [part for part in module.split("/") if not _VERSION.fullmatch(part)]
    last = parts[-1] if parts else ""
    return Import(module, "", alias or last.rpartition("-")[2].rpartition(".")[2])


def _unnamed(_path: str, names: Collection[str]) -> tuple[Import, ...]:
    """The other files of the package."""
    return (Import(_HERE, ALL, ""),) if names else ()


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    if found.module == _HERE:
        files = [file for file in _package(folder_of(path), tree, tests=path.endswith("_test.go")) if file != path]
        yield Target(tuple(files), found.member, together=True)
        return
    for up in upward(folder_of(path)):
        if "go.mod" not in tree.names(up):
            continue
        code = tree.code(f"{up}/go.mod".lstrip("/"))
        module = _MODULE.search(code.text) if code else None
        if module and f"{found.module}/".startswith(f"{module[1]}/"):
            folder = f"{up}/{found.module[len(module[1]) + 1 :]}".strip("/")
            yield Target(tuple(_package(folder, tree)), found.member, together=True)
        return


def _package(folder: str, tree: Tree, *, tests: bool = False) -> list[str]:
    names = sorted(name for name in tree.names(folder) if name.endswith(".go"))
    shown = [name for name in names if tests or not name.endswith("_test.go")]
    return [f"{folder}/{name}".lstrip("/") for name in shown[:_MOST_FILES]]


def _index(code: Code) -> Index:
    """Methods belong to what their type's name stands for."""
    index: Index = {}
    grouped = 0  # where the last group ends
    for found in _HEAD.finditer(code.bare):
        receiver, function, word, name, group = found.groups()
        at = found.start()
        if function:
            if not receiver or function[0].isupper():
                add(index, receiver or function, at, Kind.HEADER)
        elif name:
            add(index, name, at, Kind.DATA if word == "type" else Kind.VALUE)
        elif at >= grouped:
            end = code.bare.find("\n)", at)
            grouped = end if end >= 0 else len(code.bare)
            for each in _GROUPED.finditer(code.bare, at, grouped):
                add(index, each[1], each.start(1), Kind.DATA if group == "type" else Kind.VALUE)
    return index


GO = Language(
    noise=_NOISE,
    statement=_STATEMENT,
    imports=_imports,
    targets=_targets,
    index=_index,
    lines=outline,
    unnamed=_unnamed,
)
