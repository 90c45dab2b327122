"""What else the model is shown beside the text around the cursor: one source per file, in order of worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from backends.base import File
from completion.context.open_files import OpenFiles
from completion.tokens import estimate_file
from completion.types import CompletionContext, DocumentSnapshot


class Source(Protocol):
    """Where extra files come from. Asked anew for each request, so it must be quick and steady from key to key."""

    def files(
        self,
        context: CompletionContext,
        tokens: int,
        clean: Callable[[str], str],
        ignored: Callable[[DocumentSnapshot], bool],
    ) -> tuple[File, ...]: ...


# By the names used in the setting `context.sources`. The first one gets the room first.
SOURCES: dict[str, type[Source]] = {
    "open_files": OpenFiles,
}


class Gatherer:
    """Asks the chosen sources, in the order of the table."""

    def __init__(self, names: Iterable[str], ignored: Callable[[DocumentSnapshot], bool]) -> None:
        chosen = frozenset(names)
        self._sources = [source() for name, source in SOURCES.items() if name in chosen]
        self._ignored = ignored

    def gather(self, context: CompletionContext, tokens: int, clean: Callable[[str], str]) -> tuple[File, ...]:
        """At most `tokens` of files, most relevant last."""
        files: tuple[File, ...] = ()
        for source in self._sources:
            more = source.files(context, tokens, clean, self._ignored)
            tokens -= sum(estimate_file(file.path, file.text) for file in more)
            files = (*more, *files)
        return files
