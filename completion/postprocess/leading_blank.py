"""SentencePiece models begin an answer with a blank that is none: not at a line's start, behind a blank or bracket."""

from __future__ import annotations

from completion.indents import is_depth
from completion.lines import columns
from completion.postprocess.base import Around


def drop(text: str, around: Around) -> str:
    lead = around.window.lead
    one_blank = text[:1] == " " and text[1:2].strip() != ""
    # ` * ` continues a block comment; in a patch the blank says that the line is unchanged.
    if not one_blank or text[1:2] == "*" or around.language_id in ("diff", "patch"):
        return text
    if not lead.strip():
        above = around.window.prefix.rstrip()
        as_above = lead != "" and columns(above[above.rfind("\n") + 1 :]) == columns(lead + text)
        return text if (as_above and not is_depth(around.window, lead)) or _indents(lead + " ", text) else text[1:]
    if lead[-1] in "([":  # some write `f( a )`, throughout
        return text if f"{lead[-1]} " in around.window.prefix + around.window.suffix else text[1:]
    return text[1:] if lead[-1] == " " else text


def _indents(indent: str, text: str) -> bool:
    """Whether a later line of the answer is indented by `indent`, and not more: it is no blank too many then."""
    return any(line.startswith(indent) and line[len(indent) :][:1].strip() for line in text.split("\n")[1:])
