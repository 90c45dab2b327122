"""Ways to choose what is shown beside the window, for `midfill bench context`. Each is a function of a place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from backends.base import File
from completion.tokens import estimate_file, fit_head
from completion.types import DocumentSnapshot
from lsp_server.bench.context_code import WORD
from lsp_server.bench.context_places import CAPABILITIES, SETTINGS, TOKENS, Place, planner, window

LINES = 60  # of one window
TOP = 4  # windows shown, one a file
# Words that say nothing about what code is about.
_WORDS = """
    a an and are as async await break case class const continue def do else export false final fn for from func
    function if import in int is it let new none not null of on or private public pub return self static string struct
    switch the this to true try type use var void while with
"""
_COMMON = frozenset(_WORDS.split())


def nothing(place: Place) -> Sequence[File]:
    """No other file: what the window gains by having all the room."""
    small = window(place.context, SETTINGS.prompt_tokens - TOKENS)
    large = window(place.context, SETTINGS.prompt_tokens)
    gained = len(large.prefix) - len(small.prefix)
    return [File(place.file.path, large.prefix[:gained])] if gained > 0 else []


def head(place: Place) -> Sequence[File]:
    """The head of the file viewed last."""
    return _packed((other.path or "", _text(other)) for other in place.context.others[:1])


def windows(place: Place) -> Sequence[File]:
    """The common choice: of each open file of the language the 60 lines most like the 60 before the cursor.

    Likeness is Jaccard's, of the sets of words. The best four are taken, best first, as far as they fit; the last is
    cut. Files of any size are looked at, though those who choose so leave out long ones.
    """
    context = place.context
    before = context.document.text.slice(0, context.offset).split("\n")[:-1][-LINES:]
    wanted = frozenset().union(*map(_words, before))
    found = []
    for other in context.others:
        if other.language_id == context.document.language_id:
            score, start = _best(other, wanted)
            if score > 0:
                found.append((score, other, start))
    found.sort(key=lambda each: -each[0])
    return _packed(
        (other.path or "", "\n".join(_text(other).split("\n")[start : start + LINES]))
        for _, other, start in found[:TOP]
    )


def everything(place: Place) -> Sequence[File]:
    """All open files, however long: no way to choose among them finds more."""
    return [File(other.path or "", _text(other)) for other in place.context.others]


class Ours:
    """As the engine chooses."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._planner = planner(sources)

    def __call__(self, place: Place) -> Sequence[File]:
        extra = self._planner.plan(place.context, SETTINGS, CAPABILITIES).extra
        # The next place is another session's, but for what is known of documents that stay as they are.
        for document in (place.context.document, *place.context.others):
            if document is place.context.document or document.opened is not None:
                self._planner.forget(document.uri)
        return extra


def _text(document: DocumentSnapshot) -> str:
    return document.text.slice(0, len(document.text))


def _packed(pieces: Iterable[tuple[str, str]]) -> list[File]:
    """As many as fit, the last one cut to the lines that do."""
    room, packed = TOKENS, []
    for path, text in pieces:
        fits = fit_head(text, room - estimate_file(path, ""))
        shown = text if fits == len(text) else text[: text.rfind("\n", 0, fits) + 1]
        if shown:
            packed.append(File(path, shown))
            room -= estimate_file(path, shown)
        if len(shown) < len(text):
            break
    return packed


@lru_cache(maxsize=50_000)
def _words(line: str) -> frozenset[str]:
    return frozenset(WORD.findall(line.lower())) - _COMMON


def _best(document: DocumentSnapshot, wanted: frozenset[str]) -> tuple[float, int]:
    """The highest likeness of 60 lines to `wanted`, and the first line of those."""
    lines = [_words(line) for line in _text(document).split("\n")]
    counts: Counter[str] = Counter()
    shared, best = 0, (0.0, 0)
    for number, words in enumerate(lines):
        for word in words:
            counts[word] += 1
            shared += counts[word] == 1 and word in wanted
        if number >= LINES:
            for word in lines[number - LINES]:
                counts[word] -= 1
                if not counts[word]:
                    del counts[word]
                    shared -= word in wanted
        if number >= LINES - 1 or number == len(lines) - 1:
            union = len(counts) + len(wanted) - shared
            if shared and shared / union > best[0]:
                best = shared / union, max(0, number - LINES + 1)
    return best
