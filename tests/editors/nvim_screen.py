"""The screen that Neovim draws on, kept from its redraw events, and a picture of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.editors.picture import Look, svg

Cell = tuple[str, int]  # a character, empty behind a wide one, and its highlight


@dataclass
class Screen:
    """Follows `ext_linegrid` and `ext_hlstate`; one grid."""

    width: int
    height: int
    rows: list[list[Cell]] = field(default_factory=list)
    cursor: tuple[int, int] = (0, 0)
    colours: dict[str, int] = field(default_factory=dict)
    styles: dict[int, dict[str, Any]] = field(default_factory=dict)
    names: dict[int, set[str]] = field(default_factory=dict)  # highlight groups by id

    def __post_init__(self) -> None:
        self.rows = [self._blank() for _ in range(self.height)]

    def _blank(self) -> list[Cell]:
        return [(" ", 0)] * self.width

    def apply(self, events: list[list[Any]]) -> None:
        for name, *calls in events:
            handle: Callable[..., None] | None = getattr(self, f"_{name}", None)
            if handle is not None:
                for arguments in calls:
                    handle(*arguments)

    def _grid_clear(self, grid: int) -> None:
        self.rows = [self._blank() for _ in range(self.height)]

    def _grid_resize(self, grid: int, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._grid_clear(grid)

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _grid_line(self, grid: int, row: int, column: int, cells: list[list[Any]], wrap: bool = False) -> None:
        style = 0
        for text, *more in cells:
            style = more[0] if more else style
            for _ in range(more[1] if len(more) > 1 else 1):
                self.rows[row][column] = (text, style)
                column += 1

    def _grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, by: int, columns: int) -> None:
        span = range(top, bottom - by) if by > 0 else range(bottom - 1, top - by - 1, -1)
        for row in span:
            self.rows[row][left:right] = self.rows[row + by][left:right]

    def _default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        self.colours = {"foreground": foreground, "background": background}

    def _hl_attr_define(self, style: int, rgb: dict[str, Any], terminal: Any, info: list[dict[str, Any]]) -> None:
        self.styles[style] = rgb
        self.names[style] = {each.get("hi_name", "") for each in info}

    # What is seen -----------------------------------------------------------------------------------------------------

    def text(self, row: int) -> str:
        return "".join(text for text, _ in self.rows[row]).rstrip()

    def lines(self) -> list[str]:
        return [self.text(row) for row in range(self.height)]

    def highlighted(self, group: str) -> str:
        """The text in this highlight group, one line for each row that has any."""
        found = ["".join(t for t, style in row if group in self.names.get(style, ())) for row in self.rows]
        return "\n".join(text for text in found if text)

    # A picture --------------------------------------------------------------------------------------------------------

    def svg(self, title: str, rows: int) -> str:
        """The first rows as SVG, with a cursor."""
        drawn = [[(text, self._look(style)) for text, style in row] for row in self.rows[:rows]]
        base = Look(self._colour("foreground"), self._colour("background"))
        return svg(title, drawn, self.cursor, base)

    def _look(self, style: int) -> Look:
        own = "background" in self.styles.get(style, {})
        return Look(self._colour("foreground", style), self._colour("background", style) if own else "")

    def _colour(self, name: str, style: int = 0) -> str:
        return f"#{self.styles.get(style, {}).get(name, self.colours.get(name, 0)):06x}"
