"""What is read by hand is read as cattrs reads it; all else is left to cattrs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from lsprotocol import types

from lsp_server.protocol import _make_converter
from lsp_server.quick import read

INLINE: dict[str, Any] = {
    "textDocument": {"uri": "file:///a.py"},
    "position": {"line": 3, "character": 14},
    "context": {"triggerKind": 2},
}
CHANGE: dict[str, Any] = {
    "textDocument": {"uri": "file:///a.py", "version": 7},
    "contentChanges": [
        {"range": {"start": {"line": 3, "character": 13}, "end": {"line": 3, "character": 14}}, "text": "é\n\ud800"}
    ],
}
METHODS: dict[str, Any] = {types.TEXT_DOCUMENT_INLINE_COMPLETION: INLINE, types.TEXT_DOCUMENT_DID_CHANGE: CHANGE}
CONVERTER = _make_converter()
ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 1.0, 2**40, "", "3", [], {}, [{}], {"line": 1}, {"uri": "u"}, ["x"])


def structured(method: str, params: Any) -> Any:
    params_type: Any = types.METHOD_TO_TYPES[method][2]
    return CONVERTER.structure(params, params_type)


def places(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Paths to everything inside `value`."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield (key,)
        yield from ((key, *rest) for rest in places(each))


def put(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """A copy with `new` at `path`; with `...`: without what is there."""
    result = copy.deepcopy(value)
    inside = result
    for key in path[:-1]:
        inside = inside[key]
    if new is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = new
    return result


@pytest.mark.parametrize("method", METHODS)
def test_the_usual_form_is_read_without_the_converter(method: str) -> None:
    params = METHODS[method]
    expected = structured(method, params)
    assert read(method, params) == expected
    assert read(method, {**params, "workDoneToken": "t", "more": {}}) == expected


@pytest.mark.parametrize("method", METHODS)
def test_whatever_is_odd_is_read_as_the_converter_reads_it_or_left_to_it(method: str) -> None:
    params, left = METHODS[method], 0
    for path in places(params):
        for new in (*ODD, ...):
            odd = put(params, path, new)
            found = read(method, odd)
            if found is None:
                left += 1
            else:
                assert found == structured(method, odd), (path, new)
    assert left > 40


def test_a_chosen_entry_of_the_menu_and_whole_texts_are_left_to_the_converter() -> None:
    chosen = {"range": CHANGE["contentChanges"][0]["range"], "text": "append"}
    inline = put(INLINE, ("context", "selectedCompletionInfo"), chosen)
    assert read(types.TEXT_DOCUMENT_INLINE_COMPLETION, inline) is None
    assert read(types.TEXT_DOCUMENT_DID_CHANGE, put(CHANGE, ("contentChanges", 0), {"text": "all"})) is None
    assert read(types.TEXT_DOCUMENT_DID_CHANGE, put(CHANGE, ("contentChanges",), [])) is None
    assert read(types.TEXT_DOCUMENT_DID_OPEN, {}) is None
