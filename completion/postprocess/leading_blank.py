"""SentencePiece models begin an answer with a blank that is none: not after a blank, not at a line's beginning."""

from __future__ import annotations

from completion.postprocess.base import Around


def drop(text: str, around: Around) -> str:
    lead = around.window.lead
    one_blank = text[:1] == " " and text[1:2].strip() != ""
    # ` * ` continues a block comment.
    if not one_blank or text[1:2] == "*":
        return text
    if not lead.strip() or lead[-1] == " ":
        return text[1:]
    return text
