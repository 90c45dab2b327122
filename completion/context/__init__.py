"""What else the model is shown beside the text around the cursor. Must not know prompts or backends.

What was chosen for a document is kept, so that a prompt begins with the same text from key to key; it is made anew in
pauses (`refresh`). A key (`gather`) only chooses where nothing usable is kept.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from completion.clock import Clock, SystemClock
from completion.context.base import Look, Snippet, Source
from completion.context.choice import Choice, choose
from completion.context.header import Header
from completion.context.imports import Imports
from completion.context.leaves import leaves, line_at
from completion.context.open_files import OpenFiles
from completion.context.recent_edits import RecentEdits
from completion.context.similar import Similar
from completion.types import CompletionContext, DocumentSnapshot, Text, Window

logger = logging.getLogger(__name__)

# By the names used in the setting `context.sources`, in the order in which they are asked: the quick ones first.
SOURCES: dict[str, type[Source]] = {
    "header": Header,
    "imports": Imports,
    "recent_edits": RecentEdits,
    "similar": Similar,
    "open_files": OpenFiles,
}

# All sources together, seconds. A choice may have to be made while a key waits.
_TIME_S = 0.010

# A choice is made anew at most that often, seconds: a local model then reads it again, which takes it up to a few
# seconds, and in so short a time the user seldom turns to something else without moving away.
_EVERY_S = 5.0
# Or when the cursor is that many lines away: half of it is then out of the text that decided.
_FAR = 30
# A line is hardly longer, code points.
_LINE = 200
# A key does with what is kept for that long, seconds, where no pause was used.
_STALE_S = 60.0

# Documents whose choice is kept.
_KEPT = 20


@dataclass(frozen=True, slots=True)
class _Kept:
    """A choice and what it was made for. `done`: no source ran out of time."""

    choice: Choice
    made: float  # seconds of the clock
    tokens: int
    language_id: str
    text: Text
    offset: int
    others: tuple[DocumentSnapshot, ...]
    done: bool


class Gatherer:
    """Asks the chosen sources and keeps what was chosen for each document."""

    def __init__(
        self, names: Iterable[str], ignored: Callable[[DocumentSnapshot], bool], clock: Clock | None = None
    ) -> None:
        chosen = frozenset(names)
        self._sources = [(name, source()) for name, source in SOURCES.items() if name in chosen]
        self._ignored = ignored
        self._clock = clock or SystemClock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def gather(
        self, context: CompletionContext, tokens: int, clean: Callable[[str], str], window: Callable[[], Window]
    ) -> Choice:
        """At most `tokens`: what is kept, if it is for this document and budget and not too old, else a new choice.

        `clean` takes secrets out of a text without changing its length; `window` gives what the prompt shows if all
        the tokens are used. Both are called only for a new choice.
        """
        kept = self._usable(context, tokens)
        if kept is not None:
            same = kept.others is context.others or kept.others == context.others
            if self._clock.now() - kept.made < (_STALE_S if same else _EVERY_S):
                return kept.choice
        return self._choose(context, tokens, clean, window)

    def refresh(
        self, context: CompletionContext, tokens: int, clean: Callable[[str], str], window: Callable[[], Window]
    ) -> None:
        """Choose anew if it is time: nothing usable is kept or not all was read, the cursor is far, or all is old."""
        kept = self._usable(context, tokens)
        if kept is not None and kept.done and not _far(kept, context):
            text, offset = context.document.text, context.offset
            same = kept.text is text and kept.offset == offset and kept.others == context.others
            if same or self._clock.now() - kept.made < _EVERY_S:
                return
        self._choose(context, tokens, clean, window)

    def forget(self, uri: str) -> None:
        """The document was closed: nothing of it is shown any more."""
        for name, kept in list(self._kept.items()):
            if name == uri or any(snippet.uri == uri for snippet in kept.choice.snippets):
                del self._kept[name]
        for _, source in self._sources:
            source.forget(uri)

    def _usable(self, context: CompletionContext, tokens: int) -> _Kept | None:
        document = context.document
        kept = self._kept.get(document.uri)
        if kept is None or (kept.tokens, kept.language_id) != (tokens, document.language_id):
            return None
        return kept

    def _choose(
        self, context: CompletionContext, tokens: int, clean: Callable[[str], str], window: Callable[[], Window]
    ) -> Choice:
        document = context.document
        old = self._kept.pop(document.uri, None)
        if not self._sources or tokens <= 0:
            choice, done = Choice(), True
        else:
            end = self._clock.now() + _TIME_S
            look = self._look(context, tokens, window(), lambda: self._clock.now() >= end)
            found = self._found(look)
            done = not look.late()
            choice = choose(found, look, clean, old.choice if old else Choice())
        made = self._clock.now()
        self._kept[document.uri] = _Kept(
            choice, made, tokens, document.language_id, document.text, context.offset, context.others, done
        )
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return choice

    def _look(self, context: CompletionContext, tokens: int, window: Window, late: Callable[[], bool]) -> Look:
        at = line_at(leaves(context.document.text), context.offset)
        shown = (max(0, at - window.prefix.count("\n")), at + window.suffix.count("\n") + 1)
        return Look(context, window.prefix, window.suffix, tokens, self._ignored, late, shown)

    def _found(self, look: Look) -> list[Snippet]:
        """What the sources give. When time is up the others are left out; the first of them begins the next time."""
        found: list[Snippet] = []
        for place, (name, source) in enumerate(self._sources):
            if place and look.late():
                self._sources = [*self._sources[place:], *self._sources[:place]]
                break
            try:
                found += source.snippets(look)
            except Exception as error:  # whatever other files hold, the request goes on
                logger.warning("context source %s failed: %s", name, type(error).__name__)
                logger.debug("its error", exc_info=error)
        return found


def _far(kept: _Kept, context: CompletionContext) -> bool:
    """Whether the cursor is in another part of the document than when the choice was made."""
    low, high = sorted((kept.offset, context.offset))
    return high - low > _FAR * _LINE or context.document.text.slice(low, high).count("\n") > _FAR
