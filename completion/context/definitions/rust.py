"""Rust: what `use` and `mod` name, where it stands, definitions. Must not know how files are read."""

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
    Target,
    Tree,
    add,
    joined,
    upward,
)

_NOISE = re.compile(f"{TO_LINE_END}|{BLOCK_COMMENT}|{DOUBLE}|{CHARACTER}")
_STATEMENT = re.compile(
    r"^[ \t]*+(?:pub(?:\([^()\n]*+\))?+[ \t]++)?+(?:use[ \t]++([^;=()]*+);?+|mod[ \t]++(\w++)[ \t]*+;)", re.MULTILINE
)
_TOKEN = re.compile(r"[{},]|[^{},]+")
_PATH = re.compile(r"([\w:]+?)(?:\s+as\s+(\w+))?")
_HEAD = re.compile(
    r"^(?:pub(?:\([^()\n]*+\))?+[ \t]++)?+(?:(?:async|unsafe|default|"
    r"const(?=[ \t]++(?:async|unsafe|extern|fn)\b)|extern(?:[ \t]++\"[^\"\n]*+\")?+)[ \t]++)*+"
    r"(?:(fn|struct|enum|trait|union|type|const|static)[ \t]++(?:mut[ \t]++)?+(\w++)"
    r"|macro_rules![ \t]*+(\w++)|impl\b([^{;]*+))",
    re.MULTILINE,
)
_OF = re.compile(r"(?:[\w]++::)*+(\w++)")
_NAME = re.compile(r"^name[ \t]*+=[ \t]*+\"([\w-]++)\"", re.MULTILINE)
_KINDS = {
    "fn": Kind.HEADER,
    "trait": Kind.BLOCK,
    **dict.fromkeys(("struct", "enum", "union"), Kind.DATA),
    **dict.fromkeys(("type", "const", "static"), Kind.VALUE),
}
_TOPS = ("lib.rs", "main.rs")
_DEEPEST = 8  # braces within each other, and parts of a path


def _imports(code: Code) -> Iterator[Import]:
    for found in _STATEMENT.finditer(code.bare):
        if found[2]:
            yield Import(f"self::{found[2]}", "", found[2])
        else:
            yield from _use(found[1])


def _use(tree: str) -> Iterator[Import]:
    """`a::{b as c, d::{self, *}}`, one by one."""
    outer: list[str] = []
    path = ""
    for token in _TOKEN.findall(tree):
        if token == "{":
            outer.append(path)
        elif token == "}" and outer:
            outer.pop()
        elif token not in "{},":
            written = "".join(outer) + token.strip() if len(outer) <= _DEEPEST else ""
            path = token.strip() if token.rstrip().endswith("::") else ""
            if not path and written:
                yield from _one(written)


def _one(written: str) -> Iterator[Import]:
    if written.endswith("::*"):
        yield Import(written.removesuffix("::*"), ALL, "")
        return
    found = _PATH.fullmatch(written)
    if found is None:
        return
    path = found[1].removesuffix("::self")
    above, _, last = path.rpartition("::")
    if above:
        yield Import(above, last, found[2] or last)


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    whole = found.module if found.member in ("", ALL) else f"{found.module}::{found.member}"
    parts = [part for part in whole.split("::") if part]
    place = _place(parts, path, tree) if len(parts) <= _DEEPEST else None
    if place is None:
        return
    folder, rest, own = place
    if found.member == ALL:
        yield Target(_module(folder, rest, own), ALL)
        return
    yield Target(_module(folder, rest, own) if rest else (), "")
    if rest:
        yield Target(_module(folder, rest[:-1], own), rest[-1])
    if len(rest) > 1:  # a variant, or something in a module within the file
        yield Target(_module(folder, rest[:-2], own), rest[-1])
        yield Target(_module(folder, rest[:-2], own), rest[-2])


def _place(parts: list[str], path: str, tree: Tree) -> tuple[str, list[str], tuple[str, ...]] | None:
    """The folder of the module where a path begins, the path from there, and the files the module itself may be."""
    folder, _, name = path.rpartition("/")
    at_top = name in (*_TOPS, "mod.rs")
    here = folder if at_top else joined(folder, name.removesuffix(".rs"))
    first, rest = parts[0], parts[1:]
    if first == "self":
        return here or "", rest, (path,)
    if first == "super":
        up: str | None = here
        for index, part in enumerate(parts):
            if part != "super":
                return up or "", parts[index:], _itself(up or "")
            up = joined(up or "", "..") if up is not None else None
        return up or "", [], _itself(up or "")
    for crate in upward(folder):
        if "Cargo.toml" in tree.names(crate):
            source = f"{crate}/src".lstrip("/")
            if first == "crate" or first == _crate(crate, tree):
                return source, rest, tuple(f"{source}/{top}" for top in _TOPS)
            beside = joined(crate, "..") if crate else None
            for near in (*((beside,) if beside is not None else ()), f"{crate}/crates".lstrip("/"), crate):
                for spelt in (first, first.replace("_", "-")):
                    if spelt in tree.names(near):
                        source = f"{near}/{spelt}/src".lstrip("/")
                        return source, rest, (f"{source}/lib.rs",)
            break
    return here or "", parts, (path,)  # a module of this file's own


def _crate(folder: str, tree: Tree) -> str:
    code = tree.code(f"{folder}/Cargo.toml".lstrip("/"))
    name = _NAME.search(code.text) if code else None
    return name[1].replace("-", "_") if name else ""


def _itself(folder: str) -> tuple[str, ...]:
    """The files that the module with this folder may be."""
    files = [f"{folder}/{name}".lstrip("/") for name in ("mod.rs", *_TOPS)]
    return (*files, f"{folder}.rs") if folder else tuple(files)


def _module(folder: str, parts: list[str], own: tuple[str, ...]) -> tuple[str, ...]:
    if not parts:
        return own
    place = "/".join((folder, *parts)).lstrip("/")
    return f"{place}.rs", f"{place}/mod.rs"


def _index(code: Code) -> Index:
    """What is implemented belongs to what the type's name stands for."""
    index: Index = {}
    for found in _HEAD.finditer(code.bare):
        word, name, macro, implemented = found.groups()
        at = found.start()
        if word:
            add(index, name, at, _KINDS[word])
        elif macro:
            add(index, macro, at, Kind.HEADER)
        elif " for " not in implemented:
            of = _OF.match(_without_parameters(implemented))
            if of:
                add(index, of[1], at, Kind.BLOCK)
    return index


def _without_parameters(implemented: str) -> str:
    """`<T: A<B>> Type<T>` without what stands in front of the type."""
    depth = 0
    for at, character in enumerate(implemented[:400]):
        depth += (character == "<") - (character == ">" and implemented[at - 1] != "-")
        if depth <= 0 and (character.isalnum() or character == "_"):
            return implemented[at:]
    return ""


RUST = Language(noise=_NOISE, statement=_STATEMENT, imports=_imports, targets=_targets, index=_index, lines=outline)
