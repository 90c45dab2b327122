"""White space at the answer's end. Before text on the same line a blank may be meant, and after lines a line end."""

from __future__ import annotations

from completion.postprocess import mid_line
from completion.postprocess.base import Around


def trim(text: str, around: Around) -> str:
    rest = around.window.rest
    if text.endswith(f"\n{around.window.lead}") and mid_line.whole_lines_wanted(around):
        return text
    bare = text.rstrip()
    if rest[:1].strip() and ("\n" in bare or "\n" not in text[len(bare) :]):
        return text
    return bare
