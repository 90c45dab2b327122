"""Which snippets are shown, in which order: one ranking, one budget, nothing twice. Must not know any one source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from backends.base import File
from completion.context.base import Look, Snippet
from completion.context.leaves import Leaf, count, leaves, lines_of, normal
from completion.tokens import estimate, estimate_file, fit_head
from completion.types import ContextPiece

# What was shown before counts that much more, so that pieces of about equal worth do not take turns: each change has
# a local model read all that follows it again.
_KEPT = 1.25

# Shares of a snippet's telling lines: so many of them in the window, or in one other snippet, and it is left out.
# llama.vim gives up chunks half like the window, as they make models repeat it, and nine tenths like another chunk.
_IN_WINDOW, _IN_OTHER = 0.5, 0.8
_TELLING = 5  # code points of a line that says something of where it stands; `else:` and `});` do not

# With less room than this, in tokens, a snippet's beginning says nothing.
_SCRAP = 40

# Lines above and below a snippet that are searched for secrets with it: one may begin or end out of sight.
_CLEANED = 100


@dataclass(frozen=True, slots=True)
class Choice:
    """What is shown: `files` for the prompt, most relevant last, and the snippets they are made of, in that order.

    `tokens` they take; `own`: some of it is of the document itself.
    """

    files: tuple[File, ...] = ()
    snippets: tuple[Snippet, ...] = ()
    tokens: int = 0
    own: bool = False
    pieces: tuple[ContextPiece, ...] = ()  # the same without text


def choose(found: Iterable[Snippet], look: Look, clean: Callable[[str], str], before: Choice) -> Choice:
    """The best of what was found that fits `look.tokens`; what `before` showed stays where it is, if it is shown still.

    Snippets of a document overlap nowhere, nor do they overlap the window; those that touch are shown as one.
    """
    documents = {each.uri: each for each in (*look.context.others, look.context.document)}
    parts: dict[str, Sequence[Leaf]] = {}

    def lines_in(uri: str, lines: tuple[int, int]) -> str | None:
        """The text of some lines as it is now."""
        if uri not in documents:
            return None
        if uri not in parts:
            parts[uri] = leaves(documents[uri].text)
        return normal("".join(lines_of(parts[uri], *lines)))

    standing = [each for each in before.snippets if not each.uri or lines_in(each.uri, each.lines) == each.text]
    ranked = sorted((_preferred(each, standing) for each in found), key=lambda each: -each.score)
    taken = _Taken(look)
    room = look.tokens
    chosen: list[Snippet] = []
    for snippet in ranked:
        for part in taken.rest(snippet):
            fitting = _fitting(part, room)
            if fitting is None or not taken.add(fitting):
                continue
            chosen.append(fitting)
            room -= estimate_file(fitting.path, fitting.text)
    chosen = _ordered(_merged(chosen), before)
    known = {_identity(each): file for each, file in zip(before.snippets, before.files, strict=True)}
    files = tuple(_file(each, known, lines_in, clean) for each in chosen)
    pieces = tuple(map(_piece, chosen, files))
    own = any(each.uri == look.context.document.uri for each in chosen)
    return Choice(files, tuple(chosen), sum(piece.tokens for piece in pieces), own, pieces)


def _piece(snippet: Snippet, file: File) -> ContextPiece:
    tokens = estimate_file(file.path, file.text)
    return ContextPiece(snippet.source, file.path, snippet.lines, round(snippet.score, 3), tokens)


def _preferred(snippet: Snippet, standing: Sequence[Snippet]) -> Snippet:
    """The snippet, or what was shown of the same place if that is about the same; both count more than new ones."""
    for old in standing:
        if (old.source, old.path, old.uri) != (snippet.source, snippet.path, snippet.uri):
            continue
        if old.text == snippet.text or (_whole(old) and _whole(snippet) and _alike(old.lines, snippet.lines)):
            return replace(old, score=min(1.0, snippet.score * _KEPT))
    return snippet


def _alike(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges have more than half of both in common."""
    shared = min(a[1], b[1]) - max(a[0], b[0])
    return 2 * shared > max(a[1] - a[0], b[1] - b[0])


def _whole(snippet: Snippet) -> bool:
    """Whether the text is all of the lines that it says it is."""
    first, end = snippet.lines
    return bool(snippet.uri) and end > first and count(snippet.text) == end - first


def _lines(text: str) -> list[str]:
    """Each with its ending."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


class _Taken:
    """What is shown already: lines by document, and what they say."""

    def __init__(self, look: Look) -> None:
        self._window = _telling(look.before) | _telling(look.after)
        self._said: list[frozenset[str]] = []
        self._ranges: dict[str, list[tuple[int, int]]] = {look.context.document.uri: [look.shown]}

    def rest(self, snippet: Snippet) -> list[Snippet]:
        """What of the snippet's lines is not shown, from the top."""
        whole = _whole(snippet)
        rest = [snippet]
        for first, end in self._ranges.get(snippet.uri, ()) if snippet.uri else ():
            left = []
            for each in rest:
                if each.lines[1] <= first or end <= each.lines[0]:
                    left.append(each)
                elif whole:
                    left += _without(each, first, end)
            rest = left
        return rest

    def add(self, snippet: Snippet) -> bool:
        """False if it says nothing new."""
        said = _telling(snippet.text)
        if not snippet.text.strip() or len(said & self._window) > _IN_WINDOW * max(1, len(said)):
            return False
        if said and any(len(said & other) >= _IN_OTHER * len(said) for other in self._said):
            return False
        self._said.append(said)
        if snippet.uri:
            self._ranges.setdefault(snippet.uri, []).append(snippet.lines)
        return True


def _telling(text: str) -> frozenset[str]:
    return frozenset(bare for line in text.split("\n") if len(bare := line.strip()) >= _TELLING)


def _without(snippet: Snippet, first: int, end: int) -> list[Snippet]:
    """What stands above and below the lines [first, end)."""
    begin, stop = snippet.lines
    lines = _lines(snippet.text)
    parts = []
    if begin < first:
        parts.append(replace(snippet, text="".join(lines[: first - begin]), lines=(begin, first)))
    if end < stop:
        parts.append(replace(snippet, text="".join(lines[end - begin :]), lines=(end, stop)))
    return parts


def _fitting(snippet: Snippet, room: int) -> Snippet | None:
    """The snippet, or its first lines, as far as there is room."""
    if estimate_file(snippet.path, snippet.text) <= room:
        return snippet
    room -= estimate_file(snippet.path, "")
    if room < _SCRAP:
        return None
    text = snippet.text[: fit_head(snippet.text, room)]
    text = text[: text.rfind("\n") + 1]
    if estimate(text) < _SCRAP // 2:
        return None
    first, end = snippet.lines
    return replace(snippet, text=text, lines=(first, min(end, first + text.count("\n"))))


def _merged(chosen: Iterable[Snippet]) -> list[Snippet]:
    """Those that touch each other as one, as good as the better one; best first."""
    merged: list[Snippet] = []
    for snippet in sorted(chosen, key=lambda each: (each.uri, each.path, each.lines)):
        last = merged[-1] if merged else snippet
        touches = last is not snippet and last.uri == snippet.uri and last.lines[1] == snippet.lines[0]
        if touches and last.path == snippet.path and _whole(last) and _whole(snippet) and last.text.endswith("\n"):
            better = max(last, snippet, key=lambda each: each.score)
            merged[-1] = replace(better, text=last.text + snippet.text, lines=(last.lines[0], snippet.lines[1]))
        else:
            merged.append(snippet)
    return sorted(merged, key=lambda each: -each.score)


def _ordered(best_first: Sequence[Snippet], before: Choice) -> list[Snippet]:
    """Most relevant last; those shown before keep their order, and new ones stand behind all that are worth less."""
    places = {_identity(each): place for place, each in enumerate(before.snippets)}
    ordered = sorted(
        (each for each in best_first if _identity(each) in places), key=lambda each: places[_identity(each)]
    )
    for snippet in reversed(best_first):
        if _identity(snippet) not in places:
            worse = [place for place, each in enumerate(ordered) if each.score <= snippet.score]
            ordered.insert(worse[-1] + 1 if worse else 0, snippet)
    return ordered


def _identity(snippet: Snippet) -> tuple[str, str]:
    return snippet.path, snippet.text


def _file(
    snippet: Snippet,
    known: Mapping[tuple[str, str], File],
    lines_in: Callable[[str, tuple[int, int]], str | None],
    clean: Callable[[str], str],
) -> File:
    """The very file shown before, if it is the same; else a new one, without secrets."""
    if (shown := known.get(_identity(snippet))) is not None:
        return shown
    first, end = snippet.lines
    above = lines_in(snippet.uri, (max(0, first - _CLEANED), first)) if _whole(snippet) else None
    if above is not None:
        whole = above + snippet.text + (lines_in(snippet.uri, (end, end + _CLEANED)) or "")
        cleaned = clean(whole)
        if len(cleaned) == len(whole):
            return File(snippet.path, cleaned[len(above) : len(above) + len(snippet.text)])
    return File(snippet.path, clean(snippet.text))
