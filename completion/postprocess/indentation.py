"""Indentation that already stands before the cursor is not written twice."""

from __future__ import annotations

import re

from completion.indents import is_depth
from completion.lines import columns, opens
from completion.postprocess.base import Around

_CLOSERS = re.compile(r"[)\]}]|(?:end|fi|done|esac|else|elif|elsif|elseif|until)\b|;;")


def once(text: str, around: Around) -> str:
    lead = around.window.lead
    if not lead or lead.strip() or not text.startswith(lead):
        return text
    first = text[len(lead) :]
    if first[:1] in (" ", "\t") or _deeper_is_meant(text, around):
        return text
    return first


def _deeper_is_meant(text: str, around: Around) -> bool:
    """Whether a block begins here and the cursor is not yet indented more than the line that opens it."""
    lead, language = around.window.lead, around.language_id
    above = around.window.prefix[: len(around.window.prefix) - len(lead)].rstrip()
    line = above[above.rfind("\n") + 1 :]
    if columns(line) < columns(lead):
        return False
    if opens(line, language):
        return True
    if columns(line) == columns(lead + text) > columns(lead) and not is_depth(around.window, lead):
        return True
    return columns(line) == columns(lead) and line.strip() != "" and _agree(lead, text, language)


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
