"""Which tokens stand where in a prompt, and what goes when they are too many. Knows tokens as numbers, no llama.cpp."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from backends.llama_worker.healing import Pieces, roll_back


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


class Tokenizer(Pieces, Protocol):
    @property
    def fim(self) -> Fim: ...

    @property
    def first(self) -> int | None:
        """The token every text of this model begins with (BOS), or None."""

    def tokenize(self, text: str, *, joined: bool = False) -> list[int]:
        """User text: nothing in it becomes a special token.

        `joined`: it goes on from what stands before it, so that no blank is put between (SentencePiece).
        """

    def special(self, text: str) -> int | None:
        """The one token this special piece stands for; None if it is not exactly one."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A prompt in segments. The answer must begin with `required`, which is then taken off it."""

    segments: tuple[Segment, ...]
    required: bytes = b""


def infill_layout(prompt: Mapping[str, Any], tokenizer: Tokenizer, *, heal: bool) -> Layout:
    """Prefix, suffix, middle (PSM), other files before them. An empty suffix is sent as a newline.

    `heal`: what the prefix's last token may become is left to the answer.
    """
    fim = tokenizer.fim
    if fim.pre is None or fim.suf is None or fim.mid is None:
        raise ValueError("the vocabulary has no infill tokens")
    segments = _begin(tokenizer)
    if prompt["extra"] and fim.sep is not None:
        segments += _files(prompt, fim.rep, fim.sep, tokenizer)
    prefix, required = tokenizer.tokenize(prompt["prefix"]), b""
    if heal:
        prefix, required = roll_back(prefix, tokenizer)
    segments += [
        Segment((fim.pre,)),
        Segment(tuple(prefix), Role.PREFIX),
        Segment((fim.suf,)),
        Segment(tuple(tokenizer.tokenize(prompt["suffix"] or "\n", joined=True)), Role.SUFFIX),
        Segment((fim.mid,)),
    ]
    return Layout(tuple(segments), required)


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


def raw_layout(prompt: Mapping[str, Any], tokenizer: Tokenizer, *, heal: bool) -> Layout:
    """A prompt in pieces: special ones become one token each or are left out, plain ones are tokenised literally.

    `heal`: what the last token before the cursor may become is left to the answer.
    """
    parts = _parts(prompt["pieces"], tokenizer)
    main, cursor = _main(parts), _cursor(parts)
    segments, required = _begin(tokenizer) + _context(parts[:main], tokenizer), b""
    after_suffix = False
    for index, part in enumerate(parts[main:], main):
        if part.id is not None:
            after_suffix = _names_suffix(part.text)
            segments.append(Segment((part.id,)))
            continue
        ids = tokenizer.tokenize(part.text, joined=after_suffix)
        if heal and index == cursor:
            ids, required = roll_back(ids, tokenizer)
        segments.append(Segment(tuple(ids), Role.SUFFIX if after_suffix else Role.PREFIX))
    if not any(segment.ids for segment in segments):
        segments.append(Segment(tuple(tokenizer.tokenize("\n")), Role.PREFIX))  # something must be evaluated
    return Layout(tuple(segments), required)


def _cursor(parts: Sequence[_Part]) -> int:
    """Which part the answer goes on from: the text before the hole, or the last one. -1: none."""
    marks = [index for index, part in enumerate(parts) if part.id is not None and _names_prefix(part.text)]
    index = marks[-1] + 1 if marks else len(parts) - 1
    return index if 0 <= index < len(parts) and parts[index].id is None else -1


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
