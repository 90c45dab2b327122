"""Python: imports, where they lead, definitions. Must not know how files are read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from completion.context.definitions.code import (
    ALL,
    DOUBLE,
    SINGLE,
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

_LONG = r'"""(?:[^"\\]++|\\(?s:.)|"(?!""))*+(?:"""|\Z)' + r"|'''(?:[^'\\]++|\\(?s:.)|'(?!''))*+(?:'''|\Z)"
_NOISE = re.compile(rf"{_LONG}|{DOUBLE}|{SINGLE}|#[^\n]*+")
_STATEMENT = re.compile(
    r"^[ \t]*+(?:from[ \t]++(\.*+(?:[ \t]*+(?!import\b)[\w.]++)?+)[ \t]*+\bimport\b[ \t]*+"
    r"(?:\(([^)=:]*+)|((?:[^\n;#(\\]|\\\n)*+))"
    r"|import[ \t]++((?:[^\n;#\\]|\\\n)*+))",
    re.MULTILINE,
)
_NAMED = re.compile(r"([\w.]+|\*)(?:\s+as\s+(\w+))?")
# What stands at the margin ends a class, too.
_HEAD = re.compile(
    r"^(?:([ \t]*+)(?:(async[ \t]++def|def|class)[ \t]++(\w++))"
    r"|(?:if|try|else|elif|except|finally|with|for|while)\b"
    r"|(?:type[ \t]++)?+(\w++)[ \t]*+(?::[^=\n]*+)?+(?:=(?!=)|\[))",
    re.MULTILINE,
)
_MARK = re.compile(r"[()\[\]{}\n]")
_MEMBER = re.compile(r"[ \t]*+(?:(?:async[ \t]++)?+def[ \t]++(\w++)|(\w++)[ \t]*+[:=](?!=))")
_QUOTED = re.compile(r"[ \t]*+[rRuU]?(\"\"\"|'''|\"|')(.*+)", re.DOTALL)
_MOST_HEADER = 24  # lines
_MOST_VALUE = 8
_MOST_CLASS = 36
_SHOWN_PRIVATE = frozenset({"__init__", "__call__", "__enter__", "__aenter__", "__getitem__", "__iter__"})


def _imports(code: Code) -> Iterator[Import]:
    for found in _STATEMENT.finditer(code.bare):
        origin, many, few, modules = found.groups()
        if origin is None:
            for name, alias in _names(modules):
                yield Import(name, "", alias or name)
            continue
        module = re.sub(r"\s", "", origin)
        for name, alias in _names(many if many is not None else few):
            yield Import(module, ALL, "") if name == "*" else Import(module, name, alias or name)


def _names(listed: str) -> Iterator[tuple[str, str]]:
    for each in listed.replace("\\\n", " ").split(","):
        named = _NAMED.fullmatch(each.strip())
        if named:
            yield named[1], named[2] or ""


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    dots = len(found.module) - len(found.module.lstrip("."))
    rest = found.module[dots:].replace(".", "/")
    if dots:
        base = joined(folder_of(path), "/".join([".."] * (dots - 1)))
        bases = [base] if base is not None else []
    else:
        top = rest.partition("/")[0]
        bases = [base for base in _bases(path) if {top, f"{top}.py", f"{top}.pyi"} & set(tree.names(base))]
    for base in bases:
        module = f"{base}/{rest}".strip("/")
        files = _files(module) if rest else tuple(f"{base}/__init__.{end}".lstrip("/") for end in ("py", "pyi"))
        yield Target(files, found.member)
        if found.member not in ("", ALL):
            yield Target(_files(f"{module}/{found.member}".lstrip("/")), "")


def _bases(path: str) -> Iterator[str]:
    """Folders where absolute imports may begin, nearest first."""
    for folder in upward(folder_of(path)):
        yield folder
        yield f"{folder}/src".lstrip("/")


def _files(module: str) -> tuple[str, ...]:
    return tuple(f"{module}{end}" for end in ("/__init__.py", ".py", ".pyi", "/__init__.pyi"))


def _index(code: Code) -> Index:
    index: Index = {}
    classes: list[int] = []  # widths of what is open: classes and functions
    for found in _HEAD.finditer(code.bare):
        indent, word, name, value = found.groups()
        width = len(indent or "")
        while classes and classes[-1] >= width:
            classes.pop()
        if word:
            if not classes:
                add(index, name, found.start(3), Kind.BLOCK if word == "class" else Kind.HEADER)
            classes.append(width)
        elif value and value not in index:
            add(index, value, found.start(4), Kind.VALUE)
    return index


def _lines(code: Code, spot: Spot) -> list[int]:
    first = code.line_of(spot.at)
    if spot.kind is Kind.VALUE:
        end = _end(code, first, _MOST_VALUE)
        return list(range(first, end)) if end - first < _MOST_VALUE else [first]
    start = first
    while start > 0 and first - start < 4 and code.lines[start - 1].lstrip().startswith("@"):
        start -= 1
    end = _end(code, first, _MOST_HEADER)
    kept = [*range(start, end), *_docstring(code, end)]
    return kept + _members(code, first, end) if spot.kind is Kind.BLOCK else kept


def _end(code: Code, first: int, most: int) -> int:
    """One past the line where a statement's brackets are closed."""
    depth, line = 0, first
    for mark in _MARK.finditer(code.bare, code.starts[first]):
        if mark[0] == "\n":
            line += 1
            if depth <= 0 or line - first >= most:
                return line
        else:
            depth += 1 if mark[0] in "([{" else -1
    return len(code.lines)


def _docstring(code: Code, line: int) -> list[int]:
    """The first line of a docstring that begins at `line`, with the quotes before it where they stand alone."""
    quoted = _QUOTED.fullmatch(code.lines[line]) if line < len(code.lines) else None
    if quoted is None:
        return []
    alone = len(quoted[1]) == 3 and not quoted[2].strip() and line + 1 < len(code.lines)
    return [line, line + 1] if alone else [line]


def _members(code: Code, first: int, line: int) -> list[int]:
    """Fields and headers of methods of the class whose header, in line `first`, ends before `line`."""
    outer = _width(code.lines[first])
    inner = None
    kept: list[int] = []
    while line < len(code.lines) and len(kept) < _MOST_CLASS:
        bare = code.bare_line(line)
        if not bare.strip():
            line += 1
            continue
        width = _width(bare)
        if width <= outer and not bare.lstrip().startswith((")", "]", "}")):
            break
        inner = width if inner is None else inner
        member = _MEMBER.match(bare) if width == inner else None
        if member is None:
            line += 1
            continue
        end = _end(code, line, _MOST_HEADER if member[1] else _MOST_VALUE)
        name = member[1] or member[2]
        if not name.startswith("_") or name in _SHOWN_PRIVATE:
            decorated = code.bare_line(line - 1).lstrip().startswith("@")  # a property, say
            kept += range(line - decorated, end)
        line = end
    return kept


def _width(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


PYTHON = Language(noise=_NOISE, statement=_STATEMENT, imports=_imports, targets=_targets, index=_index, lines=_lines)
