"""Where a prompt can end so that the model sees tokens as it knows them. Knows tokens and bytes, no llama.cpp.

A text that stops at the cursor often ends inside a token: `impo`, the dot of `self.`, half of an indentation. What
could be another token if the text went on is taken off, and the answer is held to begin with its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

WHITESPACE = b" \t\n"
LONGEST = 256  # bytes taken off at most


class Pieces(Protocol):
    def piece(self, token: int) -> bytes:
        """The token's bytes; empty if it is no text."""

    def extends(self, piece: bytes) -> bool:
        """Whether some token begins with these bytes and goes on."""


def roll_back(ids: Sequence[int], pieces: Pieces) -> tuple[list[int], bytes]:
    """The tokens that stay whatever follows, and the bytes of the others.

    White space at the end goes as a whole, although no token may be so long: tokens of code begin with the white space
    before a word, and how a long run is divided depends on what follows it.
    """
    count, removed, joined = 0, b"", b""
    for index, token in enumerate(reversed(ids), 1):
        piece = pieces.piece(token)
        joined = piece + joined
        if not piece or len(joined) > LONGEST:
            break
        if pieces.extends(joined) or not joined.strip(WHITESPACE):
            count, removed = index, joined
    return list(ids[: len(ids) - count]), removed
