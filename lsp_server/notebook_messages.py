"""What a client says of its notebooks, without its protocol. Data only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lsp_server.edit import Edit


@dataclass(frozen=True, slots=True)
class Placed:
    """A cell's place among the others is told by its URI; its text comes apart from that."""

    uri: str
    prose: bool


@dataclass(frozen=True, slots=True)
class Opened:
    uri: str
    language_id: str
    version: int
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """`cells` in place of `deleted` ones from `start` on; None: no change of order. Then properties, then texts.

    `texts` are (URI, version, edits), each edit of the result of the one before.
    """

    splice: tuple[int, int, Sequence[Placed]] | None = None
    opened: Sequence[Opened] = ()
    closed: Sequence[str] = ()
    properties: Sequence[Placed] = ()
    texts: Sequence[tuple[str, int, Sequence[Edit]]] = ()
