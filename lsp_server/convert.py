"""Suggestions as LSP items, fitted to the document as it is now. Must not know how a suggestion came about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from completion.types import Completion, Text
from lsp_server.lines import Lines
from lsp_server.positions import Encoding

_LABEL_CHARACTERS = 80  # of a popup menu's entry


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What the editor is told: `text` in place of a range of one line of the document as it is now."""

    text: str
    range: types.Range
    id: str
    typed: str  # what stands between the start of the range and the cursor
    others: tuple[Suggestion, ...] = ()  # to choose from, the likeliest first

    @property
    def command(self) -> types.Command:
        return types.Command(title="midfill: accepted", command="midfill.accept", arguments=[self.id])


def fitted(completion: Completion, offset: int, asked: Text, now: Lines, encoding: Encoding) -> Suggestion | None:
    """Fit a completion of `asked` at `offset` to the document as it is `now`.

    None if the document moved otherwise than by typing the beginning of the suggestion at the cursor.
    """
    typed = _typed(offset, asked, now)
    if typed is None or "\n" in typed or "\r" in typed:
        return None
    end = completion.end + len(typed)
    begin, cursor = completion.start, offset + len(typed)
    before = now.slice(begin, cursor) if begin < cursor else ""
    if typed and not (completion.text.startswith(before) and len(completion.text) > len(before)):
        return None
    first, start_column = now.position_at(completion.start, encoding)
    last, end_column = first, start_column
    if end > completion.start:
        last, end_column = now.position_at(end, encoding)
    if first != last or completion.start > offset or end > len(now):
        return None
    at = types.Range(types.Position(first, start_column), types.Position(last, end_column))
    others = [fitted(other, offset, asked, now, encoding) for other in completion.others]
    return Suggestion(completion.text, at, completion.id, before, tuple(filter(None, others)))


def _typed(offset: int, asked: Text, now: Lines) -> str | None:
    """What was inserted at `offset` since; None if anything else changed."""
    if now is asked:
        return ""
    more = len(now) - len(asked)
    if more < 0 or now.slice(0, offset) != asked.slice(0, offset):
        return None
    if now.slice(offset + more, len(now)) != asked.slice(offset, len(asked)):
        return None
    return now.slice(offset, offset + more)


def pair(position: types.Position) -> tuple[int, int]:
    """(line, column), still in client units."""
    return position.line, position.character


def inline_list(suggestion: Suggestion | None) -> dict[str, Any]:
    """An InlineCompletionList as JSON: at every key the way through lsprotocol's objects costs as much as all filters.

    Empty, never null: some clients keep the old ghost text at null.
    """
    if suggestion is None:
        return {"items": []}
    return {"items": [_inline_item(each) for each in (suggestion, *suggestion.others)]}


def _inline_item(suggestion: Suggestion) -> dict[str, Any]:
    start, end, command = suggestion.range.start, suggestion.range.end, suggestion.command
    place = {
        "start": {"line": start.line, "character": start.character},
        "end": {"line": end.line, "character": end.character},
    }
    accepted = {"title": command.title, "command": command.command, "arguments": command.arguments}
    return {"insertText": suggestion.text, "range": place, "command": accepted}


def completion_list(suggestion: Suggestion | None) -> types.CompletionList:
    """For the popup menu of clients without inline completion. Incomplete, so that the client asks again."""
    if suggestion is None:
        return types.CompletionList(is_incomplete=True, items=[])
    first, more, _ = suggestion.text.strip().partition("\n")
    label = first.strip()[:_LABEL_CHARACTERS] + (" …" if more or len(first) > _LABEL_CHARACTERS else "")
    item = types.CompletionItem(
        label=label,
        kind=types.CompletionItemKind.Text,
        detail="midfill",
        documentation=suggestion.text if more else None,
        sort_text="!",  # first, as far as the client lets servers say
        preselect=True,
        filter_text=suggestion.text if suggestion.text.startswith(suggestion.typed) else suggestion.typed,
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,  # the indentation is in the text
        text_edit=types.TextEdit(suggestion.range, suggestion.text),
        command=suggestion.command,
    )
    return types.CompletionList(is_incomplete=True, items=[item])
