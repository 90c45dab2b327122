"""What a piece of code speaks of: its identifiers and the words they are made of. Must not know documents."""

from __future__ import annotations

import re

_WORD = re.compile(r"\b[^\W\d]\w{2,63}")
_WORD_OR_END = re.compile(r"\b[^\W\d]\w{2,63}|\n|\r\n?")
# The words of `HTTPServer_name2`: capitals that no small letter follows, a capital and small letters, or others.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[^\W\d_A-Z]{2,}")

# Words that are remembered with their terms. A million lines of code have some ten thousand.
_REMEMBERED = 100_000

_known: dict[str, tuple[str, ...]] = {}


def words(text: str) -> list[str]:
    """The identifiers and keywords of `text` in order, of 3 to 64 characters, and its line ends."""
    return _WORD_OR_END.findall(text)


def terms_of(word: str) -> tuple[str, ...]:
    """An identifier in small letters, then its words of 3 letters or more if it is made of several."""
    found = _known.get(word)
    if found is None:
        if len(_known) >= _REMEMBERED:
            _known.clear()
        whole = word.lower()
        parts = dict.fromkeys(part.lower() for part in _PART.findall(word) if len(part) > 2)
        parts.pop(whole, None)
        found = _known[word] = (whole, *parts)
    return found


def terms(text: str) -> set[str]:
    """All that `text` speaks of."""
    found: set[str] = set()
    for word in set(_WORD.findall(text)):
        found.update(terms_of(word))
    return found
