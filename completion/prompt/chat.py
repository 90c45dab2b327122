"""The chat prompt: a file with a hole, and the wish for what fills it. Must not know how answers are read."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backends.base import ChatPrompt, File, Message

# Tokens an answer holds besides the code: a fence, its language, a sentence.
CHAT_TOKENS = 32

_SYSTEM = (
    "You complete code in an editor. You are shown a file in which {marker} stands where something is missing. Answer"
    " with the missing text alone, in one code block: what is written there is put in place of {marker} as it is. Begin"
    " exactly at {marker}: do not repeat what stands before it, not even the beginning of its line, nor what stands"
    " after it. Keep the file's style and indentation. Explain nothing."
)
_BLOCK = "Write the line or the lines that are missing, no more than belong together."
_LINE = "Write what is missing of this one line, and no further line."
_HOLE = re.compile(r"<HOLE([0-9]*)/>")
_TICKS = re.compile(r"`{3,}")


def hole_marker(texts: Iterable[str]) -> str:
    """A mark for the hole that none of `texts` holds."""
    taken = {found[1] for text in texts for found in _HOLE.finditer(text)}  # looked for once, however many there are
    number, mark = 1, ""
    while mark in taken:
        number += 1
        mark = str(number)
    return f"<HOLE{mark}/>"


def chat_prompt(
    prefix: str, suffix: str, *, marker: str, path: str, language: str, extra: tuple[File, ...], block: bool
) -> ChatPrompt:
    """`path` and `language` may be empty; `extra` stands before the file, the most relevant last."""
    parts = [f"{_named(file.path)}, for reference:\n{_fenced(file.text.rstrip(), '')}" for file in extra]
    if extra:
        parts.insert(0, "Other files of the project:")
    parts.append(f"{_named(path or 'the file')}, with {marker} where text is missing:")
    parts.append(_fenced(f"{prefix}{marker}{suffix}", language))
    before, after = prefix[prefix.rfind("\n") + 1 :], suffix.partition("\n")[0]
    if before.strip() or after.strip():
        parts.append(f"The line with the hole:\n{_fenced(f'{before}{marker}{after}', language)}")
    parts.append(_BLOCK if block else _LINE)
    return ChatPrompt((Message("system", _SYSTEM.format(marker=marker)), Message("user", "\n\n".join(parts))))


def _named(path: str) -> str:
    return f"File {path}" if path != "the file" else "The file"


def _fenced(text: str, language: str) -> str:
    """A code block that `text` cannot end."""
    fence = "`" * max((len(run) + 1 for run in _TICKS.findall(text)), default=3)
    return f"{fence}{language}\n{text}\n{fence}"
