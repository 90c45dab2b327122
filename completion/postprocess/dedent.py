"""A line that closes or goes on with a block stands where that block began: editors indent the cursor's line deeper.

The suggestion then takes the place of the white space before the cursor. Nothing is done where the block is not found.
"""

from __future__ import annotations

import re

from completion.lines import columns, opens
from completion.postprocess import brackets
from completion.postprocess.base import Around, Edit

# What a line begins with, and what the line it belongs to holds.
_BELONGS = (
    (
        re.compile(r"(?:else|elif|elsif|elseif)\b"),
        re.compile(r"(?:if|elif|elsif|elseif|unless|for|while|try|except|case|when)\b"),
    ),
    (
        re.compile(r"(?:except|finally|catch|rescue|ensure)\b"),
        re.compile(r"(?:try|begin|def|except|catch|rescue|else)\b|.*\bdo\b"),
    ),
    (re.compile(r"fi\b"), re.compile(r"(?:if|elif|else)\b")),
    (re.compile(r"done\b"), re.compile(r"(?:for|while|until|select)\b|.*\bdo\Z")),
    (re.compile(r"esac\b"), re.compile(r"case\b")),
    (re.compile(r"\}"), re.compile(r".*\{(?:\s*\|[^|]*\|)?\s*\Z")),
    (re.compile(r"\)"), re.compile(r".*\(\s*\Z")),
    (re.compile(r"\]"), re.compile(r".*\[\s*\Z")),
)
_END = re.compile(r"end\b")
_CLOSERS = re.compile(r"[})\]]")
_JUMP = re.compile(r"(?:return|raise|break|continue|pass|throw)\b")
# Lines above that are looked at.
_ABOVE = 200


def fit(text: str, around: Around) -> str | Edit:
    lead = around.window.lead
    if not lead or lead.strip() or around.window.rest.strip():
        return text
    if text[:1].isspace():
        return _behind_jump(text, around)
    indent = _indent_of_block(text, around)
    if indent is None:
        indent = _indent_of_body(text, around)
    if indent is None or columns(indent) >= columns(lead) or not lead.startswith(indent):
        return text
    return Edit(indent + text, before=len(lead))


def _behind_jump(text: str, around: Around) -> str | Edit:
    """Behind a line that leaves its block, an answer as deep as a block around it belongs to that one."""
    lead = around.window.lead
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    line = next((line for line in reversed(_above(around)) if line.strip()), "")
    if not indent or columns(line) != columns(lead) or not _JUMP.match(line.strip()):
        return text
    if not lead.startswith(indent) or indent == lead or brackets.read(line).open:
        return text
    outer = any(each.startswith(indent) and columns(each) == columns(indent) for each in _above(around))
    return Edit(text, before=len(lead)) if outer else text


def _indent_of_block(text: str, around: Around) -> str | None:
    """The indentation of the line above that the answer's first line belongs to."""
    first = text.partition("\n")[0].strip()
    language = around.language_id
    belongs = next((opening for closing, opening in _BELONGS if closing.match(first)), None)
    ends = _END.match(first) is not None
    if belongs is None and not ends:
        return None
    limit = columns(around.window.lead) + 1
    for line in reversed(_above(around)):
        if not line.strip() or columns(line) >= limit:
            continue
        limit = columns(line)
        code = line.strip().lstrip("} ")
        if (ends and opens(line, language)) or (belongs and belongs.match(code)):
            return line[: len(line) - len(line.lstrip())]
        if limit == 0:
            break
    return None


def _indent_of_body(text: str, around: Around) -> str | None:
    """That of the nearest line above that is shallower than the answer's second one, if the first opens a block."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2 or not opens(lines[0], around.language_id) or _CLOSERS.match(lines[1].strip()):
        return None
    depth = columns(lines[1])
    if not 0 < depth <= columns(around.window.lead):
        return None
    outer = (line for line in reversed(_above(around)) if line.strip() and columns(line) < depth)
    return next((line[: len(line) - len(line.lstrip())] for line in outer), None)


def _above(around: Around) -> list[str]:
    window = around.window
    return window.prefix[: len(window.prefix) - len(window.lead)].split("\n")[-_ABOVE:]
