"""A document as it would be after a suggestion was accepted, without a copy of its text."""

from __future__ import annotations

from dataclasses import replace

from completion.types import Completion, CompletionContext, Text, Trigger


class Spliced:
    """`Text` with `new` in place of [start, end) of `old`."""

    __slots__ = ("_end", "_new", "_old", "_start")

    def __init__(self, old: Text, start: int, end: int, new: str) -> None:
        self._old, self._start, self._end, self._new = old, start, end, new

    def __len__(self) -> int:
        return len(self._old) - (self._end - self._start) + len(self._new)

    def slice(self, start: int, end: int) -> str:
        start, end = max(0, start), max(0, end)
        behind = self._start + len(self._new)  # where what follows the new text begins
        shift = self._end - behind
        parts = (
            self._old.slice(start, min(end, self._start)) if start < self._start else "",
            self._new[max(0, start - self._start) : max(0, end - self._start)],
            self._old.slice(max(start, behind) + shift, end + shift) if end > behind else "",
        )
        return "".join(parts)


def accepted(context: CompletionContext, completion: Completion) -> CompletionContext:
    """The request that would come if `completion` were accepted now."""
    document = context.document
    text = Spliced(document.text, completion.start, completion.end, completion.text)
    return replace(
        context,
        document=replace(document, text=text),
        offset=completion.start + len(completion.text),
        trigger=Trigger.AUTOMATIC,
        selected=None,
        received=None,
        deleted="",
        candidates=1,
    )
