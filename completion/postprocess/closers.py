"""Brackets and quotes that stand behind the cursor, put there by the editor, and the answer that closes them itself.

Where the answer goes on behind them on its line, it takes their place; where it ends with them, `suffix_overlap` has
taken them off. Brackets that close nothing at all are cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from completion.lines import bare
from completion.postprocess.base import Around, Edit
from completion.postprocess.brackets import PAIRS, apostrophe
from completion.types import Reason

_MARKS = re.compile(r"\"\"\"|'''|[()\[\]{}\"'`\n]")
_RUN = re.compile(r"[)\]}\"'`]+")
_MARKS_OF_END = ";,:"
# Lines above that are looked at for what a bracket may close.
_ABOVE = 60


@dataclass(frozen=True, slots=True)
class _Scan:
    """What a text leaves open, innermost last, and what it closes without having opened it; places in the text."""

    open: tuple[int, ...]
    closers: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def loose(self) -> int:
        return len(self.open) + len(self.closers)

    def same(self, text: str, other: _Scan, other_text: str) -> bool:
        return [text[at] for at in (*self.open, *self.closers)] == [
            other_text[at] for at in (*other.open, *other.closers)
        ]


def cover(text: str, around: Around) -> str | Edit | Reason:
    window = around.window
    lead, rest = window.lead, window.rest
    run = _RUN.match(rest)
    if run is None:
        return text if rest.strip() else _without_surplus(text, around)
    base, whole = lead + rest, lead + text + rest
    wanted, found = scan(base), scan(whole)
    if _holds_the_end(text, wanted, around, run.end()):
        return Edit(text.partition("\n")[0], after=len(rest.rstrip()))
    if found.same(whole, wanted, base) or found.loose < wanted.loose:
        return text
    for count in range(1, run.end() + 1):
        line = lead + text + rest[count:]
        found = scan(line)
        if found.same(line, wanted, base):
            return _taking(text, found, around, count)
    if bare(lead, around.language_id) != lead.strip() or len(found.open) <= len(wanted.open):
        return text
    return _without_open(text, around)


def _holds_the_end(text: str, wanted: _Scan, around: Around, closers: int) -> bool:
    """Whether the answer's first line ends with what follows the `closers`, and closes brackets of the line itself."""
    lead, rest = around.window.lead, around.window.rest
    first, tail = text.partition("\n")[0], rest[closers:].rstrip()
    if not tail or not first.rstrip().endswith(tail):
        return False
    found = scan(lead + first)
    closes = any(begin < len(lead) <= end and first[end - len(lead)] in PAIRS for begin, end in found.pairs)
    return closes and found.same(lead + first, wanted, lead + rest)


def _taking(text: str, found: _Scan, around: Around, count: int) -> str | Edit | Reason:
    """`text` in place of `count` closers, which it has itself; up to them if its line ends with them.

    `found`: the line with `text` in their place.
    """
    lead = around.window.lead
    own = [end - len(lead) for begin, end in found.pairs if begin < len(lead) <= end < len(lead + text)]
    if not own:
        return text
    kept = text[: _line_end(text, max(own), found, len(lead))]
    if _left_open(kept, lead):
        kept = text[: max(own) + 1]
    if kept[max(own) + 1 :].strip() or not _RUN.fullmatch(text, min(own), max(own) + 1):
        return _with_the_end(kept, around, count)
    left = text[: min(own)]
    return left if left.strip() else Reason.DUPLICATE_OF_SUFFIX


def _with_the_end(kept: str, around: Around, count: int) -> Edit:
    """`kept` in place of `count` closers, and of what follows them if it ends with that, too: no `;;`, no `::`."""
    lead, rest = around.window.lead, around.window.rest
    tail, ended = rest[count:].rstrip(), kept.rstrip()
    if not tail or not scan(lead + kept).same(lead + kept, scan(lead + rest), lead + rest):
        return Edit(kept, after=count)
    if ended.endswith(tail):
        return Edit(kept, after=len(rest.rstrip()))
    if tail[-1] not in _MARKS_OF_END or not ended.endswith(tail[-1]) or any(map(str.isalnum, tail)):
        return Edit(kept, after=count)
    left = iter(ended)
    if all(character in left for character in rest.rstrip()):  # such as `?;` behind `)?.trim();`
        return Edit(kept, after=len(rest.rstrip()))
    return Edit(ended[:-1], after=count)


def _line_end(text: str, at: int, found: _Scan, begins: int) -> int:
    """Where the first line from `at` on ends that ends outside of what `text` opens and closes."""
    end = text.find("\n", at)
    for opening, closing in sorted(found.pairs):
        if end >= 0 and begins <= opening < begins + end < closing < begins + len(text):
            end = text.find("\n", closing - begins)
    return len(text) if end < 0 else end


def _left_open(text: str, lead: str) -> list[int]:
    """Places of what `text` opens and leaves open: brackets, and `"`. A `'` may be another thing."""
    line = lead + text
    return [at - len(lead) for at in scan(line).open if at >= len(lead) and line[at] in '([{"']


def _without_open(text: str, around: Around) -> str | Reason:
    """Before closers that close other brackets: only what comes in front of the item that is left open."""
    lead = around.window.lead
    opened = _left_open(text, lead)
    if not opened:
        return text
    begin = opened[0]
    pairs = scan(lead + text[:begin]).pairs
    own = [end - len(lead) for opening, end in pairs if opening < len(lead) <= end and text[end - len(lead)] in PAIRS]
    if own:
        left = text[: min(own)]
    else:
        commas = [match.start() for match in re.finditer(",", text[:begin])]
        while commas and any(opening < len(lead) + commas[-1] < closing for opening, closing in pairs):
            commas.pop()
        left = text[: commas[-1]] if commas else ""
    return left if left.strip() else Reason.MID_LINE


def fits_better(text: str, other: str, around: Around) -> bool:
    """Whether the line has a bracket or quote without its partner with `other` in it, and none with `text`."""
    lead, rest = around.window.lead, around.window.rest
    return scan(lead + text + rest).loose == 0 < scan(lead + other + rest).loose


def closes_too_much(text: str, around: Around) -> bool:
    """Whether the line, with `text` in it, closes more than it did without."""
    lead, rest = around.window.lead, around.window.rest
    return len(scan(lead + text + rest).closers) > len(scan(lead + rest).closers)


def scan(text: str) -> _Scan:
    """Brackets in quotes do not count. A quote that its line does not close is none, but for those of several lines."""
    opened: list[int] = []
    closers: list[int] = []
    pairs: list[tuple[int, int]] = []
    quote, quote_at = "", 0
    for match in _MARKS.finditer(text):
        mark, at = match[0], match.start()
        if mark == "\n":
            quote = quote if quote in ('"""', "'''", "`") else ""
        elif mark in PAIRS:
            if not quote and opened and text[opened[-1]] == PAIRS[mark]:
                pairs.append((opened.pop(), at))
            elif not quote:
                closers.append(at)
        elif mark in "([{":
            if not quote:
                opened.append(at)
        elif quote:
            if mark.startswith(quote) and text[at - 1 : at] != "\\":
                pairs.append((quote_at, at + len(quote) - 1))
                quote = ""
        elif not apostrophe(text, at):
            quote, quote_at = mark, at
    return _Scan((*opened, *((quote_at,) if quote else ())), tuple(closers), tuple(pairs))


def _without_surplus(text: str, around: Around) -> str | Reason:
    """Without what follows from the first `)` or `]` on that closes nothing."""
    window = around.window
    if not any(closer in text for closer in ")]"):
        return text
    line = window.lead + text
    if not any(line[at] in ")]" and at >= len(window.lead) for at in scan(line).closers):
        return text
    above = window.prefix[: len(window.prefix) - len(window.lead)].split("\n")[-_ABOVE:]
    code = "\n".join(bare(each, around.language_id) for each in above) + window.lead
    for at in scan(code + text).closers:
        if at >= len(code) and text[at - len(code)] in ")]":
            left = text[: at - len(code)]
            return left if left.strip() else Reason.EMPTY
    return text
