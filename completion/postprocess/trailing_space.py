"""White space at the answer's end. A blank before text on the same line may be meant and stays."""

from __future__ import annotations

from completion.postprocess.base import Around


def trim(text: str, around: Around) -> str:
    rest = around.window.rest
    bare = text.rstrip()
    if rest[:1].strip() and "\n" not in text[len(bare) :]:
        return text
    return bare
