"""What a request has sent and why, for people: every piece with its source, place, score and tokens.

Must not know LSP or a terminal. Knows what stands in for secrets, never the secrets themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from completion.plan import shown
from completion.privacy import StandIn
from completion.tokens import estimate
from completion.trace import RequestTrace, Sent
from completion.types import ContextPiece

WINDOW = "window"  # the source of the text around the cursor

_UNNAMED = "untitled"


@dataclass(frozen=True, slots=True)
class Explained:
    """`lines` and `line` count from 1, the last included. `prompt` is as it was formed, secrets replaced."""

    pieces: tuple[Mapping[str, Any], ...]
    stand_ins: tuple[Mapping[str, Any], ...]
    prompt: str

    def as_json(self) -> dict[str, Any]:
        return {"pieces": list(self.pieces), "stand_ins": list(self.stand_ins), "prompt": self.prompt}


def explained(trace: RequestTrace) -> Explained | None:
    """None, if nothing was sent, or it is no longer remembered."""
    sent = trace.sent
    if sent is None:
        return None
    pieces = tuple(_as_sent(each, sent.stand_ins) for each in (_window(sent), *trace.pieces))
    stand_ins = [
        {
            "kind": each.kind,
            "path": pieces[each.extra].path,
            "line": pieces[each.extra].lines[0] + each.line + 1,
        }
        for each in sent.stand_ins
        if each.extra < len(pieces)
    ]
    distinct = [each for at, each in enumerate(stand_ins) if each not in stand_ins[:at]]
    return Explained(tuple(map(_piece, pieces)), tuple(distinct), shown(sent.prompt))


def _as_sent(piece: ContextPiece, stand_ins: Iterable[StandIn]) -> ContextPiece:
    """Its path may hold a secret, too."""
    path = piece.path
    for each in stand_ins:
        path = path.replace(each.secret, each.text)
    return replace(piece, path=path)


def readable(found: Explained) -> list[str]:
    """Lines for a person, without the prompt itself."""
    lines = []
    for each in found.pieces:
        first, last = each["lines"]
        place = f"{each['path']} lines {first} to {last}" if last else each["path"]
        lines.append(
            f"sent: {place}; source {each['source']}, score {each['score']:.2f}, about {each['tokens']} tokens"
        )
    return lines + [f"replaced: {each['kind']} in {each['path']}, line {each['line']}" for each in found.stand_ins]


def _window(sent: Sent) -> ContextPiece:
    """The text around the cursor as a piece: it is always there, so its score is 1."""
    text, window = sent.document.text, sent.window
    first = _ends(text.slice(0, window.start))
    end = first + (window.prefix + window.suffix).count("\n") + (not window.suffix.endswith("\n"))
    path = sent.document.path or sent.document.uri.rpartition("/")[2] or _UNNAMED
    return ContextPiece(WINDOW, path, (first, end), 1.0, estimate(window.prefix) + estimate(window.suffix))


def _ends(text: str) -> int:
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def _piece(piece: ContextPiece) -> Mapping[str, Any]:
    first, end = piece.lines
    lines = [first + 1, end] if end > first else [0, 0]
    return {
        "source": piece.source,
        "path": piece.path,
        "lines": lines,
        "score": piece.score,
        "tokens": piece.tokens,
    }
