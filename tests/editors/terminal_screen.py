"""What a terminal shows: bytes of a program become cells, its questions become answers. Must not know the process."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

import pyte
from pyte.screens import Char
from wcwidth import wcwidth

from tests.editors.picture import Look, svg

FOREGROUND, BACKGROUND = "#d4d4d4", "#1e1e1e"
_NAMED = {  # pyte's names of the first 16 colours
    **dict(zip(("black", "red", "green", "brown"), ("#000000", "#cd3131", "#0dbc79", "#e5e510"), strict=True)),
    **dict(zip(("blue", "magenta", "cyan", "white"), ("#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5"), strict=True)),
    **dict(zip(("brightblack", "brightred", "brightgreen"), ("#666666", "#f14c4c", "#23d18b"), strict=True)),
    **dict(zip(("brightbrown", "brightblue"), ("#f5f543", "#3b8eea"), strict=True)),
    **dict(zip(("brightmagenta", "brightcyan", "brightwhite"), ("#d670d6", "#29b8db", "#ffffff"), strict=True)),
}
# CSI with its mark, parameters and end; OSC and DCS with what they hold.
_SEQUENCE = re.compile(
    r"\x1b\[(?P<mark>[<=>?]?)(?P<parameters>[0-9:;]*)(?P<end>[ -/]*[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?P<stop>\x07|\x1b\\)"
    r"|\x1bP(?P<dcs>[^\x1b]*)\x1b\\"
)
_BEGUN = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|P[^\x1b]*\x1b?)?$")
_PLAIN = frozenset("@ABCDEFGHJKLMPXadefghlmr`")  # what pyte does as xterm does; of those with a mark `h` and `l` alone


class _Cells(pyte.Screen):
    """pyte's screen with what it leaves out: characters that join, colours of what is erased."""

    def draw(self, data: str) -> None:
        run = ""
        for character in data:
            if wcwidth(character) == 0:  # joins what stands before it
                super().draw(run)
                run = ""
                self._join(character)
            elif wcwidth(character) > 0:
                run += character
        super().draw(run)

    def _join(self, character: str) -> None:
        line, column = self.buffer[self.cursor.y], self.cursor.x - 1
        if column > 0 and line[column].data == "":
            column -= 1
        if column >= 0:
            line[column] = line[column]._replace(data=line[column].data + character)

    def _erasing(self, erase: Callable[[], None]) -> None:
        """Of the colours what is erased takes the background only."""
        kept = self.cursor.attrs
        self.cursor.attrs = Char(" ", bg=kept.bg)
        erase()
        self.cursor.attrs = kept

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        self._erasing(lambda: super(_Cells, self).erase_in_line(how))

    def erase_in_display(self, how: int = 0, *args: object, **kwargs: object) -> None:
        self._erasing(lambda: super(_Cells, self).erase_in_display(how))

    def erase_characters(self, count: int | None = None) -> None:
        self._erasing(lambda: super(_Cells, self).erase_characters(count))


class TerminalScreen:
    """An xterm of 256 and of true colours. `answer` gets what the program is to be told."""

    def __init__(self, width: int, height: int, answer: Callable[[str], None], *, reports_keys: bool = True) -> None:
        self.width, self.height = width, height
        self.modified_keys = 0  # xterm's modifyOtherKeys, as the program has set it
        self._reports_keys = reports_keys  # it has them at all
        self._answer = answer
        self._cells = _Cells(width, height)
        self._stream = pyte.Stream(self._cells)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._rest = ""
        self._last = " "  # the last character drawn

    def feed(self, data: bytes) -> None:
        text = self._rest + self._decode(data)
        begun = _BEGUN.search(text)
        text, self._rest = (text[: begun.start()], begun[0]) if begun else (text, "")
        at = 0
        for found in _SEQUENCE.finditer(text):
            self._draw(text[at : found.start()])
            self._obey(found)
            at = found.end()
        self._draw(text[at:])

    def _draw(self, text: str) -> None:
        if text:
            self._stream.feed(text)
            self._last = text[-1]

    def _obey(self, found: re.Match[str]) -> None:
        if found["osc"] is not None:
            number, _, value = found["osc"].partition(";")
            if value == "?" and number in ("10", "11"):
                colour = FOREGROUND if number == "10" else BACKGROUND
                red, green, blue = (colour[at : at + 2] * 2 for at in (1, 3, 5))
                self._answer(f"\x1b]{number};rgb:{red}/{green}/{blue}{found['stop']}")
        elif found["dcs"] is not None:
            if found["dcs"] == "$q q":  # the cursor's shape
                self._answer("\x1bP1$r2 q\x1b\\")
            elif found["dcs"][:2] in ("$q", "+q"):
                self._answer(f"\x1bP0{found['dcs'][0]}r\x1b\\")  # not known here
        else:
            self._control(found["mark"], found["parameters"], found["end"])

    def _control(self, mark: str, parameters: str, end: str) -> None:
        first = parameters.split(";")[0]
        if end == "m" and mark == ">":
            if first == "4" and self._reports_keys:
                self.modified_keys = int(parameters[2:] or 0)
        elif end == "m" and mark == "?" and self._reports_keys:
            self._answer(f"\x1b[>4;{self.modified_keys}m")
        elif end == "c" and mark in ("", ">"):
            self._answer("\x1b[>41;390;0c" if mark else "\x1b[?62;22c")
        elif end == "n" and not mark and first in ("5", "6"):
            row, column = self.cursor
            self._answer("\x1b[0n" if first == "5" else f"\x1b[{row + 1};{column + 1}R")
        elif end == "$p" and mark == "?":
            self._answer(f"\x1b[?{first};2$y")
        elif end == "b" and not mark:
            self._draw(self._last * int(first or 1))
        elif end in ("S", "T") and not mark:
            self._scroll(int(first or 1), up=end == "S")
        elif end in _PLAIN and (not mark or (mark == "?" and end in "hl")):
            self._stream.feed(f"\x1b[{mark}{parameters.replace(':', ';')}{end}")

    def _scroll(self, count: int, *, up: bool) -> None:
        cells, margins = self._cells, self._cells.margins
        row, column = cells.cursor.y, cells.cursor.x
        cells.cursor.y = margins.top if margins else 0
        (cells.delete_lines if up else cells.insert_lines)(count)
        cells.cursor.y, cells.cursor.x = row, column

    # What is seen -----------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column in cells, from 0."""
        return self._cells.cursor.y, min(self._cells.cursor.x, self.width - 1)

    @property
    def title(self) -> str:
        return str(self._cells.title)

    def row(self, row: int) -> list[Char]:
        """The cells of a row; behind a wide character one that is empty."""
        return [self._cells.buffer[row][column] for column in range(self.width)]

    def text(self, row: int) -> str:
        return "".join(cell.data for cell in self.row(row)).rstrip()

    def lines(self) -> list[str]:
        return [self.text(row) for row in range(self.height)]

    def having(self, condition: Callable[[Char], bool]) -> str:
        """The text of these cells, one line for each row that has any."""
        found = ["".join(cell.data for cell in self.row(row) if condition(cell)) for row in range(self.height)]
        return "\n".join(text for text in found if text)

    def coloured(self, colour: str) -> str:
        """The text in this colour: a name of pyte's, such as `green`, or `rrggbb`."""
        return self.having(lambda cell: cell.fg == colour)

    def svg(self, title: str, rows: int) -> str:
        """The first rows as SVG, with a cursor."""
        drawn = [[(cell.data, _look(cell)) for cell in self.row(row)] for row in range(rows)]
        return svg(title, drawn, self.cursor, Look(FOREGROUND, BACKGROUND))


def _look(cell: Char) -> Look:
    foreground, background = _colour(cell.fg, FOREGROUND), _colour(cell.bg, "")
    if cell.reverse:
        return Look(background or BACKGROUND, foreground)
    return Look(foreground, background)


def _colour(name: str, default: str) -> str:
    return default if name == "default" else _NAMED.get(name, f"#{name}")
