"""Passages like the text around the cursor: of the other open documents, and of this one where it is out of sight.

Must not know how they are ranked with other sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from completion.context.base import Look, Snippet
from completion.context.index import Index, Passage
from completion.context.leaves import lines_of, name_of, normal
from completion.context.words import terms, terms_of, words
from completion.lines import columns
from completion.tokens import CHARACTERS_PER_TOKEN
from completion.types import DocumentSnapshot

# Lines of the text around the cursor that are gone by, the distance at which a line counts half, and what those behind
# the cursor count. The next lines have most to do with the nearest ones: at 12 lines instead of 3, windows held 36
# instead of 39 % of what held-out lines needed, without the suffix 34 (`midfill bench context`).
_BEFORE, _AFTER = 60, 20
_HALF = 3
_SUFFIX = 0.8

# Passages that are looked into at most, until windows are found for so many times the room; lines around each that may
# belong, and lines that are shown of it.
_PASSAGES = 16
_ENOUGH = 4
_MARGIN = 20
_SHORTEST, _LONGEST = 16, 60
_BORDER = 8  # lines by which a window grows to begin or end where a block does

# A line belongs to a window if it says that many times what lines say on average; and a window of so many lines counts
# half of what it says. Both make windows short, so that more of them fit.
_PRICE = 2.5
_HALF_WORTH = 20
# So that a window which says a good part of what is around the cursor counts about 0.5.
_SCALE = 2.0
_MOST = 0.9

# Documents of another language count that much, and each one viewed less recently a little less, which decides
# between equals alone.
_OTHER_LANGUAGE = 0.4
_LESS_RECENT = 1e-4


class Similar:
    """What it knows of documents is kept in an index, which reads again only what was edited."""

    def __init__(self) -> None:
        self._index = Index()

    def forget(self, uri: str) -> None:
        self._index.forget(uri)

    def snippets(self, look: Look) -> list[Snippet]:
        documents = {each.uri: each for each in look.context.others if not look.ignored(each)}
        own = look.context.document
        documents.pop(own.uri, None)
        self._index.retain({*documents, own.uri})
        self._index.update(own, look.late)
        for document in documents.values():
            if not self._index.update(document, look.late):
                break
        documents[own.uri] = own
        weights = self._index.weights(_wanted(look))
        total = sum(weights.values())
        if not total:
            return []
        worth = {uri: _worth(place, each, own) for place, (uri, each) in enumerate(documents.items())}
        found: list[Snippet] = []
        rest = look.tokens * CHARACTERS_PER_TOKEN * _ENOUGH
        for passage in self._index.rank(weights, worth, Passage(own.uri, *look.shown), _PASSAGES):
            found += self._windows(passage, documents[passage.uri], weights, total, worth[passage.uri], look)
            rest -= len(found[-1].text) if found else 0
            if rest <= 0 or look.late():
                break
        return found

    def _windows(
        self,
        passage: Passage,
        document: DocumentSnapshot,
        weights: dict[str, float],
        total: float,
        worth: float,
        look: Look,
    ) -> Iterator[Snippet]:
        base, end = max(0, passage.first - _MARGIN), passage.end + _MARGIN
        lines = lines_of(self._index.leaves_of(document.uri), base, end)
        if document.uri == look.context.document.uri:  # what is in sight parts the lines
            above, below = look.shown[0] - base, look.shown[1] - base
            parts = [(0, lines[: max(0, above)]), (max(0, below), lines[max(0, below) :])]
        else:
            parts = [(0, lines)]
        for offset, part in parts:
            window = best(part, weights)
            if window is None:
                continue
            first, after = window
            text = normal("".join(part[first:after]))
            said = terms(text)
            share = sum(weight for term, weight in weights.items() if term in said) / total
            score = worth * min(_MOST, _SCALE * share / (1 + (after - first) / _HALF_WORTH))
            at = base + offset
            yield Snippet("similar", name_of(document), text, score, document.uri, (at + first, at + after))


def _worth(place: int, document: DocumentSnapshot, own: DocumentSnapshot) -> float:
    return (1.0 if document.language_id == own.language_id else _OTHER_LANGUAGE) * (1 - _LESS_RECENT * place)


def _wanted(look: Look) -> dict[str, float]:
    """The terms around the cursor, each with the weight of the nearest place."""
    wanted: dict[str, float] = {}
    before = look.before.split("\n")[-_BEFORE:]
    for distance, line in enumerate(reversed(before)):
        _want(wanted, line, 0.5 ** (distance / _HALF))
    for distance, line in enumerate(look.after.split("\n")[:_AFTER]):
        _want(wanted, line, _SUFFIX * 0.5 ** (distance / _HALF))
    return wanted


def _want(wanted: dict[str, float], line: str, weight: float) -> None:
    for term in terms(line):
        if weight > wanted.get(term, 0.0):
            wanted[term] = weight


def best(lines: Sequence[str], weights: dict[str, float]) -> tuple[int, int] | None:
    """The lines (first, one past the last) that say most of what is wanted for their number, out to sensible borders.

    None if they say nothing of it. A term counts where it stands first.
    """
    gains = _gains(lines, weights)
    if not any(gains):
        return None
    price = min(_PRICE * sum(gains) / max(len(gains), _LONGEST), max(gains) / 2)
    top, first, end = 0.0, 0, 0
    run, begun = 0.0, 0
    for number, gain in enumerate(gains):
        if run <= 0:
            run, begun = 0.0, number
        run += gain - price
        if run > top:
            top, first, end = run, begun, number + 1
    return _bordered(lines, first, end)


def _gains(lines: Sequence[str], weights: dict[str, float]) -> list[float]:
    """What each line says that none above it says."""
    gains = []
    gain = 0.0
    said: set[str] = set()
    for word in words("".join(lines)):
        if word < "A":  # a line end
            gains.append(gain)
            gain = 0.0
        elif word not in said:
            said.add(word)
            for term in terms_of(word):
                if term in weights and (term == word or term not in said):
                    said.add(term)
                    gain += weights[term]
    return gains if len(gains) == len(lines) else [*gains, gain]


def _bordered(lines: Sequence[str], first: int, end: int) -> tuple[int, int]:
    """Grown up to where a block begins, down to the shortest length and to where a block ends; cut if too long."""
    first = next((at for at in range(first, max(-1, first - _BORDER - 1), -1) if _begins(lines, at)), first)
    end = min(len(lines), max(end, first + _SHORTEST))
    first = min(first, max(0, end - _SHORTEST))
    end = next((at for at in range(end, min(len(lines), end + _BORDER) + 1) if _begins(lines, at)), end)
    end = min(end, first + _LONGEST)
    while first < end - 1 and not lines[first].strip():
        first += 1
    while first < end - 1 and not lines[end - 1].strip():
        end -= 1
    return first, end


def _begins(lines: Sequence[str], at: int) -> bool:
    """Whether a block ends before the line `at`, or one begins with it."""
    if at in (0, len(lines)):
        return True
    line, before = lines[at], lines[at - 1]
    if not line.strip():
        return False
    return not before.strip() or columns(line) == 0 < columns(before)
