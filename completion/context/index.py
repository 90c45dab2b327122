"""Which passages of the open documents speak of what: an inverted index. Must not know the cursor or settings.

A passage is a leaf of a document's lines. An edit replaces one leaf, so one is read again, however long the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from math import log

from completion.context.leaves import Leaf, leaves
from completion.context.words import terms
from completion.types import DocumentSnapshot, Text

# Entries of the index that a ranking walks through at most, heaviest terms first: about 1 ms. What is left out then is
# in so many passages that it tells little.
_WALKED = 15_000

# So many times the passages that are wanted are looked at for what their documents are worth.
_MORE = 4


@dataclass(slots=True)
class _Document:
    """`text` is None until all of it has been read, what is being read then with its leaves in `reading`.

    `slots` by the identity of their leaves, which they keep alive.
    """

    text: Text | None = None
    reading: tuple[Text, Sequence[Leaf]] | None = None
    slots: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Passage:
    """Some lines of a document; `first` is the number of the first one."""

    uri: str
    first: int
    end: int


class Index:
    def __init__(self) -> None:
        self._documents: dict[str, _Document] = {}
        self._leaves: dict[int, tuple[str, Leaf, tuple[str, ...]]] = {}  # by slot: document, lines, terms
        self._found: dict[str, list[int]] = {}  # slots by term
        self._next = 0
        self._free: list[int] = []  # slots below `_next` that hold nothing

    def __len__(self) -> int:
        """Passages."""
        return len(self._leaves)

    def update(self, document: DocumentSnapshot, late: Callable[[], bool]) -> bool:
        """Read what was edited since the last time. False if time ran out before all was read: go on another time."""
        known = self._documents.setdefault(document.uri, _Document())
        if known.text is document.text:
            return True
        known.text = None
        if known.reading is None or known.reading[0] is not document.text:
            known.reading = document.text, leaves(document.text)
        parts = known.reading[1]
        present = set(map(id, parts))
        gone = [key for key in known.slots if key not in present]
        for leaf in parts:
            if id(leaf) in known.slots:
                continue
            if gone:  # most of its terms are those of the leaf it replaces
                slot = known.slots.pop(gone.pop())
            elif self._free:
                slot = self._free.pop()
            else:
                slot, self._next = self._next, self._next + 1
            known.slots[id(leaf)] = slot
            self._put(slot, document.uri, leaf)
            if late():
                break
        else:
            for key in gone:
                self._drop(known.slots.pop(key))
            known.order = [known.slots[id(leaf)] for leaf in parts]
            known.text, known.reading = document.text, None
        return known.text is not None

    def forget(self, uri: str) -> None:
        known = self._documents.pop(uri, None)
        for slot in known.slots.values() if known else ():
            self._drop(slot)

    def retain(self, uris: set[str]) -> None:
        """Forget all other documents."""
        for uri in [uri for uri in self._documents if uri not in uris]:
            self.forget(uri)

    def weights(self, wanted: Mapping[str, float]) -> dict[str, float]:
        """What each term weighs: what the caller gives it, times its rarity (BM25's: always above 0)."""
        count, found = len(self._leaves), self._found
        return {
            term: weight * log(1 + (count - (n := len(found.get(term, ()))) + 0.5) / (n + 0.5))
            for term, weight in wanted.items()
        }

    def rank(
        self, weights: Mapping[str, float], worth: Mapping[str, float], shown: Passage, most: int
    ) -> list[Passage]:
        """The passages that speak most of what is wanted, best first; `worth` of a document counts, 0 if not there.

        Passages that hold a line of `shown` are left out: they are what is gone by, or the rest is too little.
        """
        scores = [0.0] * self._next
        walked = 0
        known = [term for term in weights if term in self._found]
        for term in sorted(known, key=weights.__getitem__, reverse=True):
            slots, weight = self._found[term], weights[term]
            walked += len(slots)
            if walked > _WALKED:
                break
            for slot in slots:
                scores[slot] += weight
        for slot, first, end in self._order(shown.uri):
            if first < shown.end and shown.first < end:
                scores[slot] = 0.0
        least = max(sorted(scores)[-most * _MORE :][:1], default=0.0)
        whole = {uri: worth[uri] for uri, known in self._documents.items() if known.text is not None and uri in worth}
        telling = [(score, slot) for slot, score in enumerate(scores) if score and score >= least]
        rated = [(score * whole.get(self._leaves[slot][0], 0.0), -slot) for score, slot in telling]
        best = nlargest(most, [pair for pair in rated if pair[0] > 0])
        return self._passages([-slot for _, slot in best])

    def leaves_of(self, uri: str) -> Sequence[Leaf]:
        """The lines of a document that has been read."""
        return [self._leaves[slot][1] for slot in self._documents[uri].order]

    def _passages(self, slots: list[int]) -> list[Passage]:
        places: dict[int, Passage] = {}
        for uri in {self._leaves[slot][0] for slot in slots}:
            for slot, first, end in self._order(uri):
                places[slot] = Passage(uri, first, end)
        return [places[slot] for slot in slots]

    def _order(self, uri: str) -> Iterator[tuple[int, int, int]]:
        """The passages of a document from the top: slot, first line, one past the last."""
        known = self._documents.get(uri)
        first = 0
        for slot in known.order if known and known.text is not None else ():
            end = first + len(self._leaves[slot][1])
            yield slot, first, end
            first = end

    def _put(self, slot: int, uri: str, leaf: Leaf) -> None:
        new = terms("".join(leaf))
        old = set(self._leaves[slot][2] if slot in self._leaves else ())
        self._leaves[slot] = (uri, leaf, tuple(new))  # a set would take five times the memory
        for term in new - old:
            self._found.setdefault(term, []).append(slot)
        self._remove(slot, old - new)

    def _drop(self, slot: int) -> None:
        self._remove(slot, self._leaves.pop(slot)[2])
        self._free.append(slot)

    def _remove(self, slot: int, gone: Iterable[str]) -> None:
        for term in gone:
            slots = self._found[term]
            if len(slots) == 1:
                del self._found[term]
            else:
                slots.remove(slot)
