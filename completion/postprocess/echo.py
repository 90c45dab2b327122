"""Code that already stands before the cursor is not written twice: some models begin with the line, or above it."""

from __future__ import annotations

from completion.lines import lines_above, opens
from completion.postprocess import brackets
from completion.postprocess.base import Around
from completion.postprocess.repetition import tells

# A shorter beginning is repeated by chance: word characters.
_TELLING = 2
# Lines above that are looked at.
_ABOVE = 40


def drop(text: str, around: Around) -> str:
    text = _without_lines_above(text, around)
    begun = around.window.lead.lstrip()
    bare = text.lstrip(" \t")
    if not begun or not bare.startswith(begun) or sum(c == "_" or c.isalnum() for c in begun) < _TELLING:
        return text
    # `max(` before `max(a, b), c)` opens a call within the call.
    if brackets.read(begun).open and brackets.read(bare).closers:
        return text
    return bare[len(begun) :]


def _without_lines_above(text: str, around: Around) -> str:
    """Without first lines that equal those above the cursor's, if more follows.

    Two lines at least, or one that opens a block: others may be meant to be repeated.
    """
    window = around.window
    lines = text.split("\n")
    if len(lines) < 2 or (window.lead.strip() and window.lead.strip() not in text):
        return text
    above = lines_above(window, _ABOVE)
    filled = [number for number, line in enumerate(lines[:-1]) if line.strip()][: len(above)]
    said = [lines[number].strip() for number in filled]
    for count in range(len(said), 0, -1):
        if said[0] != above[-count] or said[:count] != above[-count:] or not any(map(tells, said[:count])):
            continue
        rest = "\n".join(lines[filled[count - 1] + 1 :])
        plain = count > 1 or opens(said[0], around.language_id)
        begins = rest.lstrip().startswith(window.lead.strip())
        return rest if plain and begins and rest.strip() else text
    return text
