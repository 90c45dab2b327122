"""Indentation that already stands before the cursor is not written twice."""

from __future__ import annotations

from completion.postprocess.base import Around

_OPENERS = (":", "{", "(", "[")


def once(text: str, around: Around) -> str:
    lead = around.window.lead
    if not lead or lead.strip() or not text.startswith(lead):
        return text
    first = text[len(lead) :]
    if first[:1] in (" ", "\t") or _deeper_is_meant(lead, around.window.prefix):
        return text
    return first


def _deeper_is_meant(lead: str, prefix: str) -> bool:
    """Whether the line before opens a block and the cursor is not yet indented more than it."""
    above = prefix[: len(prefix) - len(lead)].rstrip()
    line = above[above.rfind("\n") + 1 :]
    indent = line[: len(line) - len(line.lstrip())]
    return line.endswith(_OPENERS) and len(lead) <= len(indent)
