"""Cases in TOML files: found, checked for keys that are unknown or missing, and turned into values."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from completion.context.window import Windows
from completion.types import DocumentSnapshot, PlainText, Window

ROOT = Path(__file__).resolve().parent.parent / "golden"
CURSOR = "⟦|⟧"

Case = dict[str, Any]


class BadCaseError(Exception):
    """A case that is misspelt or asserts nothing."""


def load(text: str, *, keys: Collection[str], expectations: Collection[str]) -> list[Case]:
    """The cases of one file. Each has a name, no unknown key, and at least one of `expectations`."""
    tree = tomllib.loads(text)
    if set(tree) != {"case"} or not tree["case"]:
        raise BadCaseError("a file holds [[case]] tables, one or more, and nothing else")
    names = set()
    for case in tree["case"]:
        unknown = set(case) - {"name", *keys, *expectations}
        if unknown:
            raise BadCaseError(f"unknown keys: {sorted(unknown)}")
        if not case.get("name") or case["name"] in names:
            raise BadCaseError("each case has a name of its own")
        names.add(case["name"])
        if not set(expectations) & set(case):
            raise BadCaseError(f"{case['name']} asserts nothing")
    return list(tree["case"])


def cases(folder: str, *, keys: Collection[str], expectations: Collection[str]) -> list[Any]:
    """All cases of a folder as pytest parameters."""
    parameters = []
    for path in sorted((ROOT / folder).glob("*.toml")):
        for case in load(path.read_bytes().decode("utf-8"), keys=keys, expectations=expectations):
            parameters.append(pytest.param(case, id=f"{path.stem}: {case['name']}"))
    assert parameters, f"no cases in {folder}"
    return parameters


def at_cursor(marked: str) -> tuple[str, int]:
    """Text without the cursor's mark, and the cursor's offset."""
    before, mark, after = marked.partition(CURSOR)
    assert mark, f"no cursor in {marked!r}"
    assert CURSOR not in after, f"two cursors in {marked!r}"
    return before + after, len(before)


def window_of(marked: str) -> Window:
    """The window around the cursor in `marked`, with room for all of it."""
    text, offset = at_cursor(marked)
    document = DocumentSnapshot("untitled:golden", "plaintext", 1, PlainText(text))
    return Windows().cut(document, (offset, offset), "", tokens=100_000, suffix_tokens=50_000)
