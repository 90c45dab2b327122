"""White space alone is no suggestion."""

from __future__ import annotations

from completion.postprocess.base import Around
from completion.types import Reason


def drop(text: str, around: Around) -> str | Reason:
    return text if text.strip() else Reason.EMPTY
