"""JavaScript and TypeScript: imports, where they lead, definitions. Must not know how files are read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache

from completion.context.definitions.braces import outline
from completion.context.definitions.code import (
    ALL,
    BACKTICK,
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
    joined,
    upward,
)

_NOISE = re.compile(f"{TO_LINE_END}|{BLOCK_COMMENT}|{DOUBLE}|{SINGLE}|{BACKTICK}")
_STATEMENT = re.compile(
    r"^[ \t]*+(?:(import|export)\b([^'\";()=]*+)(?:[\"']([^\"'\n]*+)[\"'])?"
    r"|(?:(?:const|let|var)[ \t]++(\{[^{}]*+\}|[\w$]++)|(?:module\.)?+exports)"
    r"[ \t]*+=[ \t]*+require\([\"']([^\"'\n]*+)[\"'])",
    re.MULTILINE,
)
_NAMED = re.compile(r"(?:type\s+)?([\w$]+)(?:\s*(?:\bas\b|:)\s*([\w$]+))?")
_PLAIN = re.compile(r"(?:type\s+)?([\w$]+)")
_ALL_AS = re.compile(r"\*(?:\s*as\s+([\w$]+))?")
_HEAD = re.compile(
    r"^(?:(export[ \t]++(default[ \t]++)?+)?+(?:declare[ \t]++)?+(?:abstract[ \t]++)?+(?:async[ \t]++)?+"
    r"(?:(function|class|interface|enum|namespace|const[ \t]++enum)\b[ \t]*+\*?+[ \t]*+([\w$]*+)"
    r"|(type|const|let|var)[ \t]++([\w$]++)|(?<=default )([\w$]++)[ \t]*+;?+[ \t]*+$)"
    r"|(?:module\.)?+exports(\.[\w$]++)?+[ \t]*+=[ \t]*+([\w$]*+))",
    re.MULTILINE,
)
_KINDS = {"function": Kind.HEADER, "class": Kind.BLOCK, "namespace": Kind.BLOCK}
_ENDS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_WRITTEN = {".js": (".ts", ".tsx", ".js"), ".jsx": (".tsx", ".jsx"), ".mjs": (".mts", ".mjs"), ".cjs": (".cts", ".cjs")}
_CONFIGS = ("tsconfig.json", "jsconfig.json")
_TRAILING = re.compile(r",(?=\s*[}\]])")
_HOME = ("@/", "~/")  # by custom the folder src


def _imports(code: Code) -> Iterator[Import]:
    for found in _STATEMENT.finditer(code.bare):
        if found[5] is not None:
            module = code.text[found.start(5) : found.end(5)]
            if found[4] is None:
                yield Import(module, ALL, "")
            elif found[4].startswith("{"):
                yield from _listed(module, found[4].strip("{}"))
            else:
                yield Import(module, "", found[4])
        elif found[3] is not None:
            yield from _clause(code.text[found.start(3) : found.end(3)], found[2], found[1])


def _clause(module: str, clause: str, word: str) -> Iterator[Import]:
    """What stands between `import` or `export` and the module's name."""
    before, brace, inside = clause.partition("{")
    for each in before.strip().removesuffix("from").split(","):
        part = each.strip()
        everything, plain = _ALL_AS.fullmatch(part), _PLAIN.fullmatch(part)
        if everything:
            yield Import(module, "", everything[1]) if everything[1] else Import(module, ALL, "")
        elif plain and word == "import" and part != "type":
            yield Import(module, "default", plain[1])
    if brace:
        yield from _listed(module, inside.partition("}")[0])


def _listed(module: str, listed: str) -> Iterator[Import]:
    for each in listed.split(","):
        named = _NAMED.fullmatch(each.strip())
        if named:
            yield Import(module, named[1], named[2] or named[1])


def _targets(found: Import, path: str, tree: Tree) -> Iterator[Target]:
    for place in _places(found.module, path, tree):
        files = tuple(_files(place))
        yield Target(files, found.member)
        if found.member == "default":  # of a module that exports no more than one thing under its name
            yield Target(files, found.name)


def _places(module: str, path: str, tree: Tree) -> Iterator[str]:
    folder = folder_of(path)
    if module.startswith("."):
        place = joined(folder, module)
        if place is not None:
            yield place
        return
    config = next(
        (f"{up}/{name}".lstrip("/") for up in upward(folder) for name in _CONFIGS if name in tree.names(up)), ""
    )
    code = tree.code(config) if config else None
    for place in _mapped(module, code) if code else ():
        whole = joined(folder_of(config), place)
        if whole is not None:
            yield whole
    if module.startswith(_HOME):
        for up in upward(folder):
            yield f"{up}/src/{module[2:]}".lstrip("/")


def _mapped(module: str, code: Code) -> Iterator[str]:
    """Where `baseUrl` and `paths` of a configuration lead, relative to its folder."""
    base, paths = _paths(code.text)
    for pattern, places in paths:
        before, star, after = pattern.partition("*")
        if star and module.startswith(before) and module.endswith(after) and len(module) >= len(before) + len(after):
            middle = module[len(before) : len(module) - len(after)]
            yield from (f"{base or '.'}/{place.replace('*', middle, 1)}" for place in places)
        elif module == pattern:
            yield from (f"{base or '.'}/{place}" for place in places)
    if base is not None:
        yield f"{base}/{module}"


@lru_cache(maxsize=8)
def _paths(text: str) -> tuple[str | None, list[tuple[str, list[str]]]]:
    # Comments and commas at the end are allowed there.
    kept = _NOISE.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    try:
        read = json.loads(_TRAILING.sub("", kept))
    except (ValueError, RecursionError):
        return None, []
    options = read.get("compilerOptions") if isinstance(read, dict) else None
    if not isinstance(options, dict):
        return None, []
    base, paths = options.get("baseUrl"), options.get("paths")
    found = [
        (pattern, [place for place in places if isinstance(place, str)])
        for pattern, places in (paths.items() if isinstance(paths, dict) else ())
        if isinstance(places, list)
    ]
    return base if isinstance(base, str) else None, found


def _files(place: str) -> Iterator[str]:
    for end, written in _WRITTEN.items():
        if place.endswith(end):
            yield from (place.removesuffix(end) + each for each in written)
            return
    if place.endswith(_ENDS):
        yield place
    yield from (place + end for end in _ENDS)
    yield from (f"{place}/index{end}".lstrip("/") for end in _ENDS)


def _index(code: Code) -> Index:
    index: Index = {}
    aliases: list[tuple[str, str]] = []
    for found in _HEAD.finditer(code.bare):
        _, default, word, name, value, named, alias, member, assigned = found.groups()
        at = found.start()
        if word:
            kind = _KINDS.get(word, Kind.DATA)
            for each in filter(None, (name, default and "default")):
                add(index, each, at, kind)
        elif value:
            add(index, named, at, Kind.VALUE)
        elif alias:
            aliases.append(("default", alias))
        elif member:
            add(index, member[1:], at, Kind.VALUE)
        elif assigned:
            aliases.append(("default", assigned))
    for given, meant in aliases:
        if meant in index:
            index.setdefault(given, index[meant])
    return index


JAVASCRIPT = Language(
    noise=_NOISE, statement=_STATEMENT, imports=_imports, targets=_targets, index=_index, lines=outline
)
