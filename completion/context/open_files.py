"""The heads of the other open files, last viewed first. Must not know how they are ranked with other sources."""

from __future__ import annotations

from completion.context.base import Look, Snippet
from completion.context.leaves import count, name_of, normal
from completion.tokens import CHARACTERS_PER_TOKEN
from completion.types import DocumentSnapshot

# Of a file that is open and no more: it fills the room that better pieces leave. Each one viewed less recently counts
# a little less, and those of another language less than all.
_SCORE, _OTHER_LANGUAGE = 0.1, 0.05
_LESS_RECENT = 1e-4

# More files than this do not fit any prompt.
_MOST = 20


class OpenFiles:
    def forget(self, uri: str) -> None:
        pass

    def snippets(self, look: Look) -> list[Snippet]:
        own, rest = look.context.document, look.tokens * _MOST
        found: list[Snippet] = []
        for place, other in enumerate(look.context.others):
            if other.uri == own.uri or look.ignored(other):
                continue
            if len(found) >= _MOST or rest <= 0:
                break
            text = _head(other, look.tokens * CHARACTERS_PER_TOKEN)
            score = (_SCORE if other.language_id == own.language_id else _OTHER_LANGUAGE) - _LESS_RECENT * place
            found.append(Snippet("open_files", name_of(other), text, score, other.uri, (0, count(text))))
            rest -= len(text)
        return found


def _head(document: DocumentSnapshot, length: int) -> str:
    """The document, or as many of its first lines as fit."""
    seen = document.text.slice(0, length)
    if len(seen) < len(document.text):
        seen = seen[: max(seen.rfind("\n"), seen.rfind("\r")) + 1]
    return normal(seen)
