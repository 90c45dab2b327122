"""Line ends: `\\n` while filters run, then those of the document on every line."""

from __future__ import annotations

from completion.postprocess.base import Around


def normalise(text: str, around: Around) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def restore(text: str, around: Around) -> str:
    return text.replace("\n", around.window.newline)
