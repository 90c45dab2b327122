"""Code that already stands before the cursor is not written twice: some models begin with the whole line."""

from __future__ import annotations

from completion.postprocess import brackets
from completion.postprocess.base import Around

# A shorter beginning is repeated by chance: word characters.
_TELLING = 2


def drop(text: str, around: Around) -> str:
    begun = around.window.lead.lstrip()
    bare = text.lstrip(" \t")
    if not begun or not bare.startswith(begun) or sum(c == "_" or c.isalnum() for c in begun) < _TELLING:
        return text
    # `max(` before `max(a, b), c)` opens a call within the call.
    if brackets.read(begun).open and brackets.read(bare).closers:
        return text
    return bare[len(begun) :]
