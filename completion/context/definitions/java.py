"""Java: imports and the own package, where they lead, definitions. Must not know how files are read."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from completion.context.definitions.braces import outline
from completion.context.definitions.code import (
    ALL,
    BLOCK_COMMENT,
    DOUBLE,
    SINGLE,
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

_NOISE = re.compile(
    rf"{TO_LINE_END}|{BLOCK_COMMENT}|\"\"\"(?:[^\"\\]++|\\(?s:.)|\"(?!\"\"))*+(?:\"\"\"|\Z)|{DOUBLE}|{SINGLE}"
)
_STATEMENT = re.compile(r"^[ \t]*+import[ \t]++(static[ \t]++)?+([\w.]++)(\*?+)[ \t]*+;", re.MULTILINE)
_HEAD = re.compile(
    r"^[ \t]*+(?:(?:public|protected|abstract|final|static|sealed|non-sealed|strictfp)[ \t]++)*+"
    r"(?:class|interface|enum|record|@interface)[ \t]++(\w++)",
    re.MULTILINE,
)
_TYPE = re.compile(r"[A-Z]\w*")
_SOURCES = ("src/main/java", "src/test/java", "src", "java")
_MOST_UNNAMED = 24
_HERE = ""


def _imports(code: Code) -> Iterator[Import]:
    for static, written, star in _STATEMENT.findall(code.bare):
        module, _, last = written.rstrip(".").rpartition(".")
        if star:
            yield Import(written.rstrip("."), ALL, "")
        elif static:  # the class that has it
            yield Import(module.rpartition(".")[0], module.rpartition(".")[2], last)
        elif module:
            yield Import(module, last, last)


def _unnamed(_path: str, names: Collection[str]) -> list[Import]:
    """Classes of the own package have files of their name."""
    types = [name for name in names if _TYPE.fullmatch(name)]
    return [Import(_HERE, name, name) for name in types[:_MOST_UNNAMED]]


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    if found.module == _HERE:
        yield Target((_file(folder_of(path), found.member),), found.member)
        return
    package = found.module.replace(".", "/")
    for root in _roots(path, package, tree):
        place = f"{root}/{package}".lstrip("/")
        if found.member == ALL:
            files = sorted(name for name in tree.names(place) if name.endswith(".java"))
            yield Target(tuple(f"{place}/{name}" for name in files if name[0].isupper()), ALL)
            yield Target((f"{place}.java",), ALL)  # `import static a.B.*`, or classes within B
        else:
            yield Target((_file(place, found.member),), found.member)
            yield Target((f"{place}.java",), found.member)  # a class within a class


def _file(folder: str, name: str) -> str:
    return f"{folder}/{name}.java".lstrip("/")


def _roots(path: str, package: str, tree: Tree) -> Iterator[str]:
    """Folders where packages may begin, nearest first: those that hold the first folder of this one."""
    top = package.partition("/")[0]
    for folder in upward(folder_of(path)):
        if top in tree.names(folder):
            yield folder
        for source in _SOURCES:
            if source.partition("/")[0] in tree.names(folder):
                root = f"{folder}/{source}".lstrip("/")
                if top in tree.names(root):
                    yield root


def _index(code: Code) -> Index:
    index: Index = {}
    for found in _HEAD.finditer(code.bare):
        add(index, found[1], found.start(), Kind.BLOCK)
    return index


JAVA = Language(
    noise=_NOISE,
    statement=_STATEMENT,
    imports=_imports,
    targets=_targets,
    index=_index,
    lines=outline,
    unnamed=_unnamed,
)
