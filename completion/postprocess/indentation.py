"""Indentation that already stands before the cursor is not written twice."""

from __future__ import annotations

import re

from completion.indents import is_depth, step
from completion.lines import bare, columns, opens
from completion.postprocess import brackets
from completion.postprocess.base import Around
from completion.postprocess.unit import in_text

_CLOSERS = re.compile(r"[)\]}]|(?:end|fi|done|esac|else|elif|elsif|elseif|until)\b|;;")
# Beginnings and ends of what goes on with the line above, aligned with anything.
_GOES_ON = re.compile(r"[.?:|&+*/%=,)\]}#-]|(?:and|or|in|not|is)\b")
_OPEN_END = re.compile(r"[\\,=+*/%&|<>.:({\[-]\Z|\b(?:and|or|not|in|is)\Z")
_COMMENT = re.compile(r"[#*]|//|/\*|--")
_ABOVE = 30  # lines that are looked at for brackets
# Indentation is what the writer likes there.
_FREE = frozenset(
    {
        "markdown",
        "plaintext",
        "restructuredtext",
        "latex",
        "yaml",
        "dockercompose",
        "diff",
        "patch",
        "sql",
        "html",
        "xml",
    }
)


def once(text: str, around: Around) -> str:
    lead = around.window.lead
    if not lead or lead.strip():
        return text
    if not text.startswith(lead):
        return _without_level(text, around)
    first = text[len(lead) :]
    if first[:1] in (" ", "\t"):
        return _without_surplus(text, first, around)
    return text if _deeper_is_meant(text, around) else first


def _without_level(text: str, around: Around) -> str:
    """What begins with one level that stands before the cursor already, behind the line that opens the block."""
    lead, language = around.window.lead, around.language_id
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    line = _line_above(around)
    if not indent or indent != step(around.window, language) or language in _FREE or not line or _within(around):
        return text
    above = line[: len(line) - len(line.lstrip())]
    if not opens(line, language) or above + indent != lead or _GOES_ON.match(text.lstrip()):
        return text
    return _shifted(text[len(indent) :], indent, lead)


def _shifted(text: str, surplus: str, lead: str) -> str:
    """With the lines below the first one less deep, too, if all of them have the surplus."""
    lines = text.split("\n")
    if all(each.startswith(lead + surplus) or not each.strip() for each in lines[1:]):
        lines[1:] = [lead + each[len(lead + surplus) :] if each.strip() else each for each in lines[1:]]
    return "\n".join(lines)


def _without_surplus(text: str, first: str, around: Around) -> str:
    """What begins with the cursor's indentation and one level more: that level is there only if a block begins here."""
    lead, language = around.window.lead, around.language_id
    indent = first[: len(first) - len(first.lstrip(" \t"))]
    line = _line_above(around)
    if indent != step(around.window, language) or language in _FREE or not line or _GOES_ON.match(first.lstrip()):
        return text
    if opens(line, language):
        return first if columns(line) == columns(lead) else text
    if columns(line) != columns(lead) or _OPEN_END.search(bare(line, language)) or _within(around):
        return text
    return _shifted(first[len(indent) :], indent, lead)


def _deeper_is_meant(text: str, around: Around) -> bool:
    """Whether a block begins here and the cursor is not yet indented more than the line that opens it."""
    lead, language = around.window.lead, around.language_id
    line = _line_above(around)
    if columns(line) < columns(lead):
        return False
    if opens(line, language):
        return True
    if columns(line) == columns(lead + text) > columns(lead) and not is_depth(around.window, lead):
        return True
    return columns(line) == columns(lead) and line.strip() != "" and _agree(lead, text, language)


def _within(around: Around) -> bool:
    """Whether the cursor is within a text of several lines, a comment, or what a bracket not far above opens."""
    if in_text(around.window.prefix) or _COMMENT.match(_line_above(around).lstrip()):
        return True
    near = "\n".join(around.window.prefix.rsplit("\n", _ABOVE + 1)[1:])
    return any(near[at] in "([" for at in brackets.read(near).open)


def _line_above(around: Around) -> str:
    """The nearest one with text."""
    above = around.window.prefix[: len(around.window.prefix) - len(around.window.lead)].rstrip()
    return above[above.rfind("\n") + 1 :]


def _agree(lead: str, text: str, language: str) -> bool:
    """Whether the answer's later lines, up to one that closes the block, are as deep as its first one would be."""
    lines = [line for line in text.rstrip().split("\n") if line.strip()]
    if not lines:
        return False
    depth = columns(lead + lines[0])
    for number, line in enumerate(lines[1:]):
        if columns(line) < depth:
            return columns(line) == columns(lead) and _CLOSERS.match(line.strip()) is not None
        if number == 0 and opens(lines[0], language) and columns(line) == depth:
            return False
    return len(lines) > 1
