"""A model that has read the recording: it answers with what comes next there, and is wrong as often as it is told.

What it knows is decided word by word and by chance, the same each time it is asked: a word it does not know it guesses
wrong, until the word's first letters stand there. So it is mostly right for some words and then goes wrong, as models
are. Knows no HTTP.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lsp_server.bench.recording import Session
from lsp_server.bench.typist import Stretch, states

HITS = 0.75  # of words that are known
CHARACTERS = 4  # of code in a token, about
_BEFORE, _BEHIND = 100, 40  # characters around the cursor by which a place is found again
_GIVEN_AWAY = 3  # letters after which a word is known
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\s*\w{1,5}|\s*[^\w\s]{1,3}|\s+")
_WRONG = ("value", "result", "items", "index", "name", "self", "data", "None")


@dataclass(frozen=True, slots=True)
class _Place:
    blank: str  # what stands between the last word and the cursor
    stretch: str  # names it, for what is drawn by chance
    text: str
    done: int


class Oracle:
    """`hits` is the share of words it knows."""

    def __init__(self, sessions: Iterable[tuple[Session, Sequence[Stretch]]], hits: float) -> None:
        self._hits = hits
        self._places: dict[tuple[str, str], list[_Place]] = {}
        for number, (session, meant) in enumerate(sessions):
            for stretch, file in states(session, meant):
                for done in range(len(stretch.text) + 1):
                    before, behind = file[: stretch.at] + stretch.text[:done], file[stretch.at :]
                    blank = before[len(before.rstrip()) :]
                    place = _Place(blank, f"{number} {stretch.number}", stretch.text, done)
                    self._places.setdefault(_key(before, behind), []).append(place)

    def answer(self, prefix: str, suffix: str, *, most_tokens: int, stops: Sequence[str]) -> list[str]:
        """The tokens, without those after the first of `stops`."""
        text = self._text(prefix, suffix)[: most_tokens * CHARACTERS]
        for stop in stops:
            text = text.partition(stop)[0]
        return _TOKEN.findall(text)

    def _text(self, prefix: str, suffix: str) -> str:
        blank = prefix[len(prefix.rstrip()) :]
        places = [each for each in self._places.get(_key(prefix, suffix), ()) if each.blank.startswith(blank)]
        if not places:
            return f"{random.Random(prefix[-_BEFORE:]).choice(_WRONG)}()"
        place = min(places, key=lambda each: len(each.blank))
        return place.blank[len(blank) :] + self._continued(place)

    def _continued(self, place: _Place) -> str:
        """All that is known, up to a wrong word and what follows it in its line."""
        for word in _WORD.finditer(place.text):
            if word.end() <= place.done or place.done - word.start() >= _GIVEN_AWAY:
                continue
            draw = random.Random(f"{place.stretch} {word.start()}")
            if draw.random() < self._hits:
                continue
            wrong = draw.choice([each for each in _WRONG if each != word[0]])
            begin = max(word.start(), place.done)
            return place.text[place.done : begin] + wrong + place.text[word.end() :].partition("\n")[0]
        return place.text[place.done :]


def _key(before: str, behind: str) -> tuple[str, str]:
    return before.rstrip()[-_BEFORE:], behind.lstrip()[:_BEHIND]
