"""What a Python file defines, uses and imports, for `midfill bench context`. Knows no other language."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from dataclasses import dataclass, field

_OBJECT = ("self", "cls")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(slots=True)
class Names:
    """Lines count from 0. `imports` holds the parts of each name imported, `import_lines` where that is done.

    Functions, classes, what is assigned outside functions and attributes of `self` are definitions; local names and
    parameters are not.
    """

    defines: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    uses: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    imports: list[tuple[str, ...]] = field(default_factory=list)
    import_lines: set[int] = field(default_factory=set)


def names(text: str) -> Names | None:
    """None if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings of strangers
            tree = ast.parse(text)
        found = Names()
        _visit(tree, found, local=False)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return found


def _visit(parent: ast.AST, found: Names, *, local: bool) -> None:
    for node in ast.iter_child_nodes(parent):
        inner = local
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.defines[node.name].add(node.lineno - 1)
                found.uses[node.lineno - 1].add(node.name)
                inner = isinstance(node, _FUNCTIONS)
            case ast.Import() | ast.ImportFrom():
                _imported(node, found)
            case ast.Name():
                _name(node, found, local=local)
            case ast.Attribute():
                _attribute(node, found)
            case ast.keyword(arg=str(name)):
                found.uses[node.lineno - 1].add(name)
        _visit(node, found, local=inner)


def _imported(node: ast.Import | ast.ImportFrom, found: Names) -> None:
    found.import_lines.update(range(node.lineno - 1, node.end_lineno or node.lineno))
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        found.imports.append(tuple(part for part in f"{module}.{alias.name}".split(".") if part not in ("", "*")))


def _name(node: ast.Name, found: Names, *, local: bool) -> None:
    stored = isinstance(node.ctx, ast.Store)
    if stored and not local:
        found.defines[node.id].add(node.lineno - 1)
    if not (stored and local):
        found.uses[node.lineno - 1].add(node.id)


def _attribute(node: ast.Attribute, found: Names) -> None:
    line = (node.end_lineno or node.lineno) - 1  # where the attribute's own name stands
    found.uses[line].add(node.attr)
    if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id in _OBJECT:
        found.defines[node.attr].add(line)
