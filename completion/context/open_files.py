"""Extra context: the other open files, most recently viewed first. Must not know how they are shown to the model."""

from __future__ import annotations

from collections.abc import Callable

from backends.base import File
from completion.tokens import CHARACTERS_PER_TOKEN, estimate_file, fit_head
from completion.types import CompletionContext, DocumentSnapshot

# With less room than this a file's head says nothing.
_LEAST = 40


class OpenFiles:
    """Files of the cursor's language first, each whole if it fits, else its head.

    The answer depends on the other files alone: the same objects come back from key to key, so that what a prompt
    begins with does not change.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._files: tuple[File, ...] = ()

    def files(
        self,
        context: CompletionContext,
        tokens: int,
        clean: Callable[[str], str],
        ignored: Callable[[DocumentSnapshot], bool],
    ) -> tuple[File, ...]:
        """At most `tokens` in all, most relevant last. `clean` is applied to each text before it is measured."""
        document = context.document
        # Unchanged documents come as the same snapshots, which compare quickly.
        key = (document.uri, document.language_id, tokens, clean, context.others)
        if key != self._key:
            self._key, self._files = key, tuple(_choose(context, tokens, clean, ignored))
        return self._files


def _choose(
    context: CompletionContext, tokens: int, clean: Callable[[str], str], ignored: Callable[[DocumentSnapshot], bool]
) -> list[File]:
    language = context.document.language_id
    chosen: list[File] = []
    for other in sorted(context.others, key=lambda other: other.language_id != language):
        if tokens < _LEAST:
            break
        if other.uri == context.document.uri or ignored(other):
            continue
        path = other.path or other.uri.rpartition("/")[2]
        text = _head(other, tokens - estimate_file(path, ""), clean)
        if text.strip():
            chosen.append(File(path, text))
            tokens -= estimate_file(path, text)
    return chosen[::-1]


def _head(document: DocumentSnapshot, tokens: int, clean: Callable[[str], str]) -> str:
    """The document, or as many of its first lines as fit. Line ends are `\\n`."""
    seen = document.text.slice(0, max(0, tokens) * CHARACTERS_PER_TOKEN)
    fits = fit_head(seen, tokens)
    if fits == len(document.text):
        return clean(seen.replace("\r\n", "\n").replace("\r", "\n"))
    end = max(seen.rfind("\n", 0, fits), seen.rfind("\r", 0, fits)) + 1
    return clean(seen[:end].replace("\r\n", "\n").replace("\r", "\n"))
