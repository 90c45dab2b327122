"""Parameters of the messages that come with every key, read by hand where they are of the usual form.

cattrs takes five times as long over them. What is unusual in any way is left to it, and so is every error message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types


def read(method: str, params: Any) -> Any:
    """The parameters as the type of the method; None: this is a case for the converter."""
    reader = _READERS.get(method)
    if reader is None:
        return None
    try:
        return reader(params)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _inline_completion(params: Any) -> types.InlineCompletionParams | None:
    context = params["context"]
    if context.get("selectedCompletionInfo") is not None:
        return None
    trigger = types.InlineCompletionTriggerKind(context["triggerKind"])
    document = types.TextDocumentIdentifier(_text(params["textDocument"]["uri"]))
    return types.InlineCompletionParams(types.InlineCompletionContext(trigger), document, _position(params["position"]))


def _did_change(params: Any) -> types.DidChangeTextDocumentParams | None:
    """One change with a range."""
    (change,) = params["contentChanges"]
    span, document = change["range"], params["textDocument"]
    at = types.Range(_position(span["start"]), _position(span["end"]))
    return types.DidChangeTextDocumentParams(
        types.VersionedTextDocumentIdentifier(_integer(document["version"]), _text(document["uri"])),
        (types.TextDocumentContentChangePartial(at, _text(change["text"])),),
    )


def _position(value: Any) -> types.Position:
    return types.Position(_integer(value["line"]), _integer(value["character"]))


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


_READERS: Mapping[str, Callable[[Any], Any]] = {
    types.TEXT_DOCUMENT_INLINE_COMPLETION: _inline_completion,
    types.TEXT_DOCUMENT_DID_CHANGE: _did_change,
}
