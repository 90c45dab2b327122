"""What passes between the sources of context and their ranking. Must not know prompts, backends or any one source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from completion.types import CompletionContext, DocumentSnapshot


@dataclass(frozen=True, slots=True)
class Snippet:
    """Whole lines worth showing to the model beside the window. `text` has line ends `\\n` and is not yet redacted.

    `path` is what the model is told. `score`, 0 to 1, says how likely it is to help, compared across sources: 1 for
    the definition of what is being called, about 0.5 for a similar place, 0.1 for a file that is merely open.
    `uri` and `lines` (first, one past the last; from 0) say where it stands, where that is known, so that nothing is
    shown twice.
    """

    source: str
    path: str
    text: str
    score: float
    uri: str = ""
    lines: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Look:
    """What a source goes by.

    `before` and `after` are the text around the cursor that the window may show, line ends `\\n`: what stands there is
    never shown again; `shown` are the lines of the document that it takes part of (first, one past the last; from 0).
    `tokens` is the room for all sources together. `ignored` tells documents that must not be quoted.
    `late` tells that time is up: a source then gives what it has, and goes on the next time.
    """

    context: CompletionContext
    before: str
    after: str
    tokens: int
    ignored: Callable[[DocumentSnapshot], bool]
    late: Callable[[], bool]
    shown: tuple[int, int] = (0, 0)


class Source(Protocol):
    """Where snippets come from. One object per engine and backend; keeps what it has worked out about other files."""

    def snippets(self, look: Look) -> Sequence[Snippet]:
        """In any order, more than fit. Quick where nothing has changed. Must not raise for what a file holds."""

    def forget(self, uri: str) -> None:
        """The document was closed."""
