"""Puts stand-ins in the place of secrets. Must not know prompts or where they go.

What was found in a line is remembered, so that a key costs its own line alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from completion.privacy.blocks import bare, blocks
from completion.privacy.secrets import Found, Span, secrets_in, shapes_in
from completion.privacy.shapes import Shape
from completion.privacy.stand_ins import StandIn, stand_in

_LINES = 20_000  # that are remembered
_GUILTY = 1000  # lines that hold secrets
_LONG, _LONG_LINES = 1000, 100  # code points of a line of which fewer are remembered
_TEXTS = 200  # of which it is remembered what stands in them
_MADE = 1000  # stand-ins whose secret is known
_PUT_BACK = (
    6,
    300,
)  # code points of a stand-in that is looked for in answers: others are no names, or never written out


@dataclass(frozen=True, slots=True)
class Cleaned:
    """As long as the text was."""

    text: str
    stand_ins: tuple[StandIn, ...] = ()


class Redactor:
    """For one kind of readers; any number of texts."""

    def __init__(self) -> None:
        self._innocent: set[str] = set()  # lines in which nothing was found, most of them
        self._guilty: dict[str, Found] = {}
        self._long: dict[str, Found] = {}
        self._made: dict[str, StandIn] = {}
        self._texts: dict[str, tuple[StandIn, ...]] = {}

    def clean(self, text: str, before: str = "", after: str = "") -> Cleaned:
        """`text` with stand-ins. `before` and `after` are what is out of sight of the lines it begins and ends in."""
        if before or after:
            return _cut(self.clean(before + text + after), len(before), len(before) + len(text))
        lines = text.split("\n")
        spans = list(self._spans(text, lines))
        if not spans:
            return Cleaned(text)
        cleaned = _replaced(text, spans)
        for each in cleaned.stand_ins:
            self._made.pop(each.text, None)
            self._made[each.text] = each
        while len(self._made) > _MADE:
            del self._made[next(iter(self._made))]
        return cleaned

    def found_in(self, cleaned: str) -> tuple[StandIn, ...]:
        """The stand-ins in a text that was cleaned before and will come again."""
        known = self._texts.get(cleaned)
        if known is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            found = []
            for each in self._made.values():
                at = cleaned.find(each.text)
                if at >= 0:
                    found.append(replace(each, line=cleaned.count("\n", 0, at)))
            known = self._texts[cleaned] = tuple(found)
        return known

    def _spans(self, text: str, lines: list[str]) -> Iterator[Span]:
        """In any order; they may overlap."""
        for start, end in blocks(text):
            yield Span(start, end, "private key")
        unknown = set(lines).difference(self._innocent)
        if not unknown:
            return
        shapes = shapes_in("\n".join(unknown))
        at = 0
        in_key = False
        for line in lines:
            if line not in self._innocent:
                for start, end, kind in self._found(line, shapes):
                    yield Span(at + start, at + end, kind)
            key = bare(line, after=in_key) if in_key or len(line) >= 60 else None
            in_key = key is not None
            if key is not None:
                yield Span(at + key[0], at + key[1], "private key")
            at += len(line) + 1

    def _found(self, line: str, shapes: tuple[Shape, ...]) -> Found:
        remembered, most = (self._long, _LONG_LINES) if len(line) > _LONG else (self._guilty, _GUILTY)
        found = remembered.get(line)
        if found is None:
            found = secrets_in(line, shapes)
            if len(line) <= _LONG and not found and bare(line, after=False) is None:
                if len(self._innocent) >= _LINES:
                    self._innocent.clear()
                self._innocent.add(line)
            else:
                if len(remembered) >= most:
                    remembered.clear()
                remembered[line] = found
        return found


def put_back(stand_ins: tuple[StandIn, ...]) -> Mapping[str, str]:
    """What an answer that holds a stand-in is to hold in its place."""
    return {each.text: each.secret for each in stand_ins if _PUT_BACK[0] <= len(each.text) <= _PUT_BACK[1]}


def redact(text: str) -> str:
    """`text` with stand-ins in the place of what looks like a secret, as long as before; line ends stay."""
    return Redactor().clean(text).text


def _replaced(text: str, spans: list[Span]) -> Cleaned:
    parts: list[str] = []
    stand_ins: list[StandIn] = []
    line, counted, end = 0, 0, 0
    for start, stop, kind in _by_line(text, sorted(spans)):
        start = max(start, end)
        if start >= stop:
            continue
        secret = text[start:stop]
        other = stand_in(secret)
        line += text.count("\n", counted, start)
        counted = start
        parts += (text[end:start], other)
        end = stop
        if other != secret:
            stand_ins.append(StandIn(kind, line, other, secret))
    return Cleaned("".join((*parts, text[end:])), tuple(stand_ins))


def _by_line(text: str, spans: list[Span]) -> Iterator[Span]:
    """Spans of one line each."""
    for start, stop, kind in spans:
        while start < stop:
            end = text.find("\n", start, stop)
            end = stop if end < 0 else end
            if start < end:
                yield Span(start, end, kind)
            start = end + 1


def _cut(cleaned: Cleaned, start: int, end: int) -> Cleaned:
    lines = cleaned.text.count("\n", 0, start)
    stand_ins = (replace(each, line=each.line - lines) for each in cleaned.stand_ins if each.line >= lines)
    return Cleaned(cleaned.text[start:end], tuple(stand_ins))
