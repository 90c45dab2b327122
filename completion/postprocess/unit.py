"""The answer is indented as the document is: with tabs, or with as many blanks. What is aligned stays aligned.

Only what is plain is changed: blanks where the document has tabs, the reverse, or steps of another width throughout.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from completion.indents import closes_block, has_step, own_step, step, unit
from completion.lines import opens
from completion.postprocess.base import Around

_INDENT = re.compile(r"[ \t]*")
_INDENTS = re.compile(r"\n([ \t]*)(?=[^ \t\n])")
_USUAL = 4  # columns that a block is indented by, at most
_WIDTHS = (4, 2, 8, 3)


def fit(text: str, around: Around) -> str:
    # What stands before the cursor indents the first line, unless the answer does.
    begin = 0 if text[:1] in (" ", "\t") and not around.window.lead.strip() else 1
    if (begin and "\n " not in text and "\n\t" not in text) or in_text(around.window.prefix):
        return text
    wanted = unit(around.window, around.language_id)
    if not wanted and "\n\t" in text and "\n\t" not in around.window.prefix + around.window.suffix:
        wanted = step(around.window, around.language_id)
    change = _change(wanted, ("\n" * (1 - begin)) + text, text, around) if wanted else None
    if change is None and begin:
        change = _own_depths(wanted, text, around)
    if change is None:
        return text
    lines = text.split("\n")
    for number in range(begin, len(lines)):
        if lines[number].strip():
            indent = _INDENT.match(lines[number])[0]  # type: ignore[index]
            lines[number] = change(indent) + lines[number][len(indent) :]
    return "\n".join(lines)


def _change(wanted: str, below: str, text: str, around: Around) -> Callable[[str], str] | None:
    """What makes an indentation out of each. `below`: the lines that the answer indents, each behind its `\\n`."""
    if wanted == "\t":
        if "\n " not in below or "\n\t" in below:  # blanks behind tabs align
            return None
        width = _width([len(indent) for indent in _INDENTS.findall(below)], _depth(around))
        return (lambda indent: "\t" * (len(indent) // width) + " " * (len(indent) % width)) if width else None
    if "\t" in text and any("\t" in indent for indent in _INDENTS.findall(below)):
        return lambda indent: indent.replace("\t", wanted)
    return _other_steps(len(wanted), text, around)


def _depth(around: Around) -> int:
    """How many tabs the answer begins with, those before the cursor among them."""
    window = around.window
    if window.lead:
        return window.lead.count("\t")
    above = window.prefix.rstrip()
    line = above[above.rfind("\n") + 1 :]
    return line.count("\t") + opens(line, around.language_id)


def _width(lengths: list[int], depth: int) -> int:
    """How many blanks of the answer are one tab. `depth`: tabs with which it begins."""
    filled = [length for length in lengths if length]
    fitting = {width: sum(length % width == 0 for length in filled) for width in _WIDTHS}
    best = max(fitting.values())
    if best * 2 <= len(filled):
        return 0
    candidates = [width for width in _WIDTHS if fitting[width] == best]
    return min(candidates, key=lambda width: abs(min(filled) / width - max(1, depth)))


def _other_steps(wanted: int, text: str, around: Around) -> Callable[[str], str] | None:
    """Steps of another width than the document's: if all that blocks are indented by is of that width."""
    lead = around.window.lead
    if text[:1] == " " and lead and not lead.strip():
        return None  # whose indentation the first line has is not plain
    whole = lead[: len(lead) - len(lead.lstrip())] + (text.lstrip(" ") if lead.strip() else text)
    depths = [len(indent) for indent in _INDENTS.findall("\n" + whole)]
    base = depths[0] if depths else 0
    rises = {below - depth for depth, below in pairwise(depths) if below > depth}
    if not rises or wanted in rises or len(rises) > 2:
        return None
    lines = [line for line in whole.split("\n") if line.strip()]
    steps = set()
    for above, (depth, below) in zip(lines, pairwise(depths), strict=False):
        if below > depth and not opens(above, around.language_id):
            return None  # aligned
        if below > depth and not above.rstrip().endswith(("(", "[", ",")):  # what goes on may be indented by two steps
            steps.add(below - depth)
    if len(steps) != 1 or "\t" in lead:
        return None
    width = steps.pop()
    plain = width in _WIDTHS and width != wanted and all((depth - base) % width == 0 for depth in depths)
    if not plain or min(depths) < base or has_step(around.window, width):
        return None
    return lambda indent: " " * (base + (len(indent) - base) // width * wanted) if len(indent) > base else indent


def _own_depths(known: str, text: str, around: Around) -> Callable[[str], str] | None:
    """Of an answer in blanks whose lines below the first one are as deep as in a document of another unit."""
    window, language = around.window, around.language_id
    lead = window.lead
    if not lead or lead.strip(" "):
        return None
    indents = _INDENTS.findall(text)
    first, below = text.partition("\n")[0], text[text.find("\n") :].strip().partition("\n")[0]
    rise = len(indents[0]) - len(lead) if indents else 1
    opened = opens(first, language) and not first.rstrip().endswith(("(", "[", "="))
    if 0 < rise <= _USUAL or (rise == 0 and not opened) or not first.strip():
        return None  # as in most documents; the rest costs more
    wanted = len((known or step(window, language)).strip("\t"))
    if not wanted or len(lead) % wanted or any("\t" in indent for indent in indents):
        return None
    depths = [len(indent) for indent in indents]
    levels = len(lead) // wanted
    width = own_step(depths[0], levels + opened - closes_block(below))
    if not width or width == wanted or any(depth % width for depth in depths):
        return None
    # Blocks are left one by one, and something must tell that the document's own unit is not meant.
    rises = all(after - before <= width for before, after in pairwise(depths))
    smaller = width < wanted and any(depth % wanted for depth in depths) and min(depths) <= len(lead)
    larger = width > wanted and opened and depths[0] - len(lead) > wanted
    if not rises or not (smaller or larger) or min(depths) < (levels - 1) * width or has_step(window, width):
        return None
    return lambda indent: " " * (len(indent) // width * wanted)


def in_text(prefix: str) -> bool:
    """Within a text of several lines white space is text."""
    return prefix.count('"""') % 2 == 1 or prefix.count("'''") % 2 == 1 or prefix.count("`") % 2 == 1
