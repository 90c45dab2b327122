"""One line or a block? Must not know the model."""

from __future__ import annotations

# What may follow the cursor on its line where a block can still be meant: closers, quotes and punctuation.
_CLOSING = frozenset(")]}>\"'`:;,{ \t")


def wants_block(mode: str, rest: str) -> bool:
    """`mode` is the setting `multiline`, `rest` the cursor's line from the cursor on."""
    if mode == "auto":
        return all(character in _CLOSING for character in rest)
    return mode == "always"
