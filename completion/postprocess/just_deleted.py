"""What the user has just deleted is not offered again, unless asked for."""

from __future__ import annotations

from completion.postprocess.base import Around
from completion.types import Reason

# Less is no statement that was taken away, but a slip of the fingers. Code points without white space.
_LEAST = 3


def drop(text: str, around: Around) -> str | Reason:
    gone = "".join(around.deleted.split())
    if not around.automatic or len(gone) < _LEAST:
        return text
    said = "".join(text.split())
    if len(said) >= _LEAST and gone.startswith(said):
        return Reason.JUST_DELETED
    # All of it and more: whoever takes away lines does not want them back first.
    whole = len(gone) >= _LEAST * 2 and any(map(str.isalnum, gone))
    return Reason.JUST_DELETED if whole and said.startswith(gone) else text
