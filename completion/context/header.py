"""The top of the file, where the window does not reach it: documentation and imports. Must not know any grammar."""

from __future__ import annotations

import re

from completion.context.base import Look, Snippet
from completion.context.leaves import leaves, lines_of, name_of, normal

# Says which names there are, which is worth more than most of what other files say.
_SCORE = 0.6

# Lines that are looked at, shown after a comment that is left out, and code points.
_LOOKED_AT = 120
_LONGEST = 40
_CHARACTERS = 2000
# A comment at the top that is longer says who owns the file, not what it is for.
_COMMENT = 8

_IMPORT = re.compile(
    r"\s*(?:(?:import|from|package|use|using|namespace|require|require_relative|include|extern|mod|module|load|library"
    r"|export \*|@import|pub use|local \w+ = require)\b|#\s*(?:include|import)\b"
    r"|(?:const|let|var) .*\brequire\(|\} from )"
)
_REMARK = re.compile(r"\s*(?:#(?!\s*(?:include|import)\b)|//|/?\*|--|;|<!--|%)")


class Header:
    def forget(self, uri: str) -> None:
        pass

    def snippets(self, look: Look) -> list[Snippet]:
        """The first lines up to the last import; of those that the window does not show."""
        document = look.context.document
        seen = min(look.shown[0], _LOOKED_AT)
        if not seen:
            return []
        lines = lines_of(leaves(document.text), 0, seen)
        first = _after_comment(lines)
        end = _end(lines[first : first + _LONGEST])
        text = normal("".join(lines[first : first + end]))
        if not text.strip():
            return []
        return [Snippet("header", name_of(document), text, _SCORE, document.uri, (first, first + end))]


def _after_comment(lines: list[str]) -> int:
    """Where the file begins behind a long comment."""
    end = next((at for at, line in enumerate(lines) if line.strip() and not _REMARK.match(line)), 0)
    return end if end > _COMMENT else 0


def _end(lines: list[str]) -> int:
    """Past the last import, and past what it goes on with; without any import, past the first block."""
    imports = [at for at, line in enumerate(lines) if _IMPORT.match(line)]
    at = imports[-1] + 1 if imports else 0
    while at < len(lines) and lines[at].strip():
        at += 1
    while at and sum(map(len, lines[:at])) > _CHARACTERS:
        at -= 1
    return at
