"""A plain model of an LSP document: one string, split anew each time, counted by character. Slow on purpose."""

from __future__ import annotations

import re
from dataclasses import dataclass

ENDING = re.compile(r"(\r\n|\r|\n)")


def units(character: str, encoding: str) -> int:
    """Width of a character in the client's units."""
    point = ord(character)
    if encoding == "utf-8":
        return 1 + (point > 0x7F) + (point > 0x7FF) + (point > 0xFFFF)
    if encoding == "utf-16":
        return 1 + (point > 0xFFFF)
    return 1


@dataclass
class ReferenceText:
    text: str

    def contents(self) -> list[str]:
        """The lines without their endings."""
        return ENDING.split(self.text)[::2]

    def endings(self) -> list[str]:
        return [*ENDING.split(self.text)[1::2], ""]

    def offset_at(self, line: int, column: int, encoding: str) -> int:
        contents, endings = self.contents(), self.endings()
        if line < 0:
            return 0
        if line >= len(contents):
            return len(self.text)
        offset = sum(len(contents[n]) + len(endings[n]) for n in range(line))
        used = 0
        for character in contents[line]:
            used += units(character, encoding)
            if used > column:
                break
            offset += 1
        return offset

    def position_at(self, offset: int, encoding: str) -> tuple[int, int]:
        offset = min(max(offset, 0), len(self.text))
        start = 0
        for number, (content, ending) in enumerate(zip(self.contents(), self.endings(), strict=True)):
            end = start + len(content) + len(ending)
            if offset < end or not ending:
                inside = content[: offset - start]
                return number, sum(units(character, encoding) for character in inside)
            start = end
        raise AssertionError("the last line has no ending")

    def edit(self, start: tuple[int, int], end: tuple[int, int], text: str, encoding: str) -> None:
        ends = sorted((self.offset_at(*start, encoding), self.offset_at(*end, encoding)))
        self.text = self.text[: ends[0]] + text + self.text[ends[1] :]
