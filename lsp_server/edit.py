"""One change of a document as the client tells it. Must not know documents."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.positions import Encoding, column_at

_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` in place of the range (start line, start column, end line, end column) in client units; None: of all."""

    text: str
    range: tuple[int, int, int, int] | None = None

    def end(self, encoding: Encoding) -> tuple[int, int]:
        """Where the new text ends, (line, column) in client units."""
        line, column = (0, 0) if self.range is None else self.range[:2]
        *above, last = _LINE_END.split(self.text)
        width = column_at(last, len(last), encoding)
        return (line + len(above), width) if above else (line, column + width)
