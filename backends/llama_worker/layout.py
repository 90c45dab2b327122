"""Which tokens stand where in a prompt, and what goes when they are too many. Knows tokens as numbers, no llama.cpp."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

WHITESPACE = " \t\n"
MAX_REQUIRED = 256  # characters of trailing whitespace taken off a prompt at most


class Role(enum.Enum):
    """What may be cut from a segment when the context is too small."""

    FIXED = "fixed"  # nothing
    CONTEXT = "context"  # all of it; the first goes first
    PREFIX = "prefix"  # its beginning
    SUFFIX = "suffix"  # its end


@dataclass(frozen=True, slots=True)
class Segment:
    ids: tuple[int, ...]
    role: Role = Role.FIXED


@dataclass(frozen=True, slots=True)
class Fim:
    """Ids of the vocabulary's infill tokens; None where it has none."""

    pre: int | None = None
    suf: int | None = None
    mid: int | None = None
    pad: int | None = None
    rep: int | None = None
    sep: int | None = None

    @property
    def infill(self) -> bool:
        return None not in (self.pre, self.suf, self.mid)


@dataclass(frozen=True, slots=True)
class Prompt:
    """`mark` is where the text before the cursor ends, `end` where that after it does (`mark` if it stands before)."""

    tokens: list[int]
    mark: int
    end: int


class Tokenizer(Protocol):
    @property
    def fim(self) -> Fim: ...

    @property
    def first(self) -> int | None:
        """The token every text of this model begins with (BOS), or None."""

    def tokenize(self, text: str) -> list[int]:
        """User text: nothing in it becomes a special token."""

    def special(self, text: str) -> int | None:
        """The one token this special piece stands for; None if it is not exactly one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A prompt in segments. The answer must begin with `required`, which is then taken off it."""

    segments: tuple[Segment, ...]
    required: str = ""


def infill_layout(prompt: Mapping[str, Any], tokenizer: Tokenizer) -> Layout:
    """Prefix, suffix, middle (PSM), other files before them. An empty suffix is sent as a newline."""
    fim = tokenizer.fim
    if fim.pre is None or fim.suf is None or fim.mid is None:
        raise ValueError("the vocabulary has no infill tokens")
    segments = _begin(tokenizer)
    if prompt["extra"] and fim.sep is not None:
        segments += _files(prompt, fim.rep, fim.sep, tokenizer)
    segments += [
        Segment((fim.pre,)),
        Segment(tuple(tokenizer.tokenize(prompt["prefix"])), Role.PREFIX),
        Segment((fim.suf,)),
        Segment(tuple(tokenizer.tokenize(prompt["suffix"] or "\n")), Role.SUFFIX),
        Segment((fim.mid,)),
    ]
    return Layout(tuple(segments))


def _files(prompt: Mapping[str, Any], rep: int | None, sep: int, tokenizer: Tokenizer) -> list[Segment]:
    segments = []
    if rep is not None and prompt["repo"]:
        segments.append(Segment((rep, *tokenizer.tokenize(prompt["repo"] + "\n"))))
    for path, text in prompt["extra"]:
        end = "" if text.endswith("\n") else "\n"
        segments.append(Segment((sep, *tokenizer.tokenize(f"{path}\n{text}{end}")), Role.CONTEXT))
    if prompt["path"]:
        segments.append(Segment((sep, *tokenizer.tokenize(prompt["path"] + "\n"))))
    return segments


def raw_layout(prompt: Mapping[str, Any], tokenizer: Tokenizer) -> Layout:
    """A prompt in pieces: special ones become one token each or are left out, plain ones are tokenised literally.

    Whitespace at the very end is taken off and required of the answer: a model sees a token boundary there that its
    training never had, because tokens of code begin with the whitespace before a word.
    """
    parts = _parts(prompt["pieces"], tokenizer)
    required = ""
    if parts and parts[-1].id is None:
        parts[-1], required = _strip(parts[-1])
    begin = _begin(tokenizer)
    if not begin and all(part.id is None and not part.text for part in parts):
        parts = [_Part("\n")]  # something must be evaluated
    main = _main(parts)
    segments = begin + _context(parts[:main], tokenizer)
    after_suffix = False
    for part in parts[main:]:
        if part.id is not None:
            after_suffix = _names_suffix(part.text)
            segments.append(Segment((part.id,)))
        else:
            role = Role.SUFFIX if after_suffix else Role.PREFIX
            segments.append(Segment(tuple(tokenizer.tokenize(part.text)), role))
    return Layout(tuple(segments), required)


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    id: int | None = None  # None: plain text


def _begin(tokenizer: Tokenizer) -> list[Segment]:
    return [] if tokenizer.first is None else [Segment((tokenizer.first,))]


def _parts(pieces: Sequence[Sequence[Any]], tokenizer: Tokenizer) -> list[_Part]:
    """Neighbouring plain pieces are joined, so that no token boundary is forced between them."""
    parts: list[_Part] = []
    for text, special in pieces:
        if special:
            token = tokenizer.special(text)
            if token is not None and not (token == tokenizer.first and not parts):
                parts.append(_Part(text, token))
        elif text:
            if parts and parts[-1].id is None:
                parts[-1] = _Part(parts[-1].text + text)
            else:
                parts.append(_Part(text))
    return parts


def _strip(part: _Part) -> tuple[_Part, str]:
    length = len(part.text.rstrip(WHITESPACE))
    length = max(length, len(part.text) - MAX_REQUIRED)
    return _Part(part.text[:length]), part.text[length:]


def _main(parts: Sequence[_Part]) -> int:
    """Where the current file's text begins: at the first infill token, else at the last plain part."""
    for index, part in enumerate(parts):
        if part.id is not None and (_names_suffix(part.text) or _names_prefix(part.text)):
            return index
    plain = [index for index, part in enumerate(parts) if part.id is None]
    return plain[-1] if plain else 0


def _names_suffix(special: str) -> bool:
    """By spelling, because raw prompts exist for the very models whose infill tokens llama.cpp does not know."""
    return any(word in special.lower() for word in ("suf", "hole"))


def _names_prefix(special: str) -> bool:
    return any(word in special.lower() for word in ("pre", "fim▁begin"))


def _context(parts: Sequence[_Part], tokenizer: Tokenizer) -> list[Segment]:
    """Each special token together with the text after it, so that neither stays without the other."""
    segments: list[Segment] = []
    for part in parts:
        if part.id is not None:
            segments.append(Segment((part.id,), Role.CONTEXT))
        else:
            ids = tuple(tokenizer.tokenize(part.text))
            head = segments.pop().ids if segments else ()
            segments.append(Segment(head + ids, Role.CONTEXT))
    return segments


def fit(segments: Sequence[Segment], room: int) -> Prompt:
    """The tokens, at most `room` (> 0). Other files go first, then the far ends of prefix and suffix.

    The suffix keeps at least a quarter of what is left for both, if it has that many.
    """
    kept = list(segments)
    total = sum(len(segment.ids) for segment in kept)
    while total > room and any(segment.role is Role.CONTEXT for segment in kept):
        index = next(i for i, segment in enumerate(kept) if segment.role is Role.CONTEXT)
        total -= len(kept.pop(index).ids)
    if total > room:
        kept = _cut(kept, room)
    tokens: list[int] = []
    ends = dict.fromkeys(Role, 0)
    for segment in kept:
        tokens += segment.ids
        ends[segment.role] = len(tokens)
    over = max(0, len(tokens) - room)
    mark = ends[Role.PREFIX] or len(tokens)
    return Prompt(tokens[over:], max(0, mark - over), max(0, mark - over, ends[Role.SUFFIX] - over))


def _cut(segments: Sequence[Segment], room: int) -> list[Segment]:
    size = {role: sum(len(s.ids) for s in segments if s.role is role) for role in Role}
    left = max(0, room - size[Role.FIXED])
    suffix = min(size[Role.SUFFIX], max(left // 4, left - size[Role.PREFIX]))
    prefix = left - suffix
    kept: list[Segment] = []
    for segment in segments:
        if segment.role is Role.SUFFIX:
            segment = Segment(segment.ids[:suffix], segment.role)
            suffix -= len(segment.ids)
        kept.append(segment)
    for index in reversed(range(len(kept))):
        if kept[index].role is Role.PREFIX:
            ids = kept[index].ids
            ids = ids[max(0, len(ids) - prefix) :]
            prefix -= len(ids)
            kept[index] = Segment(ids, Role.PREFIX)
    return kept
