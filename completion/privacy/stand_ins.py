"""What stands in a secret's place: as long, of the same classes of characters, another character in each place.

Must not know what a secret is. Keyed with what only this process knows, so that a stand-in says nothing of its secret;
the same within the process, so that a prompt does not change from key to key.
"""

from __future__ import annotations

import hashlib
import os
import string
from dataclasses import dataclass, field
from functools import lru_cache

_KEY = os.urandom(32)
_CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


@dataclass(frozen=True, slots=True)
class StandIn:
    """`line` counts from 0 in the text that was cleaned: the window, or the extra file of this number (from 1)."""

    kind: str
    line: int
    text: str
    secret: str = field(repr=False)
    extra: int = 0


@lru_cache(maxsize=1000)  # the same ones come at every key
def stand_in(secret: str) -> str:
    """Letters and digits are replaced by others of their class, what is neither stays."""
    stream = hashlib.shake_256(_KEY + secret.encode("utf-8", "surrogatepass")).digest(2 * len(secret))
    return "".join(
        _other(char, stream[2 * at] << 8 | stream[2 * at + 1]) if char.isalnum() else char
        for at, char in enumerate(secret)
    )


def _other(char: str, number: int) -> str:
    for letters in _CLASSES:
        at = letters.find(char)
        if at >= 0:
            return letters[(at + 1 + number % (len(letters) - 1)) % len(letters)]
    letters = _CLASSES[1] if char.isupper() else _CLASSES[0]
    return letters[number % len(letters)]
