"""Progress of a download on stderr: a bar on a terminal, a few lines elsewhere. Knows nothing of downloads."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from lsp_server import fds
from lsp_server.commands._terminal import note

_BAR = 24  # characters
_REDRAW_S = 0.1
_LINES = 4  # written where stderr is no terminal, beside the first


class Progress:
    """Implements `backends.base.Observer`. `now` counts seconds."""

    def __init__(self, *, terminal: bool | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._terminal = sys.stderr is not None and sys.stderr.isatty() if terminal is None else terminal
        self._now = now
        self._began: dict[str, tuple[float, float] | None] = {}  # key -> when and where the first piece came
        self._drawn = float("-inf")
        self._line = 0

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        note(message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if key not in self._began:
            if not done:
                self._began[key] = None
                note(f"{title} …")
        elif fraction is not None:
            self._show(key, fraction, done=done)

    def _show(self, key: str, fraction: float, *, done: bool) -> None:
        self._began[key] = self._began[key] or (self._now(), fraction)  # what an earlier attempt left is no speed
        if self._terminal:
            self._draw(key, fraction, done=done)
        elif not done and int(fraction * _LINES) > self._line:
            self._line = int(fraction * _LINES)
            note(f"{100 * fraction:.0f} %{self._left(key, fraction)}")

    def _draw(self, key: str, fraction: float, *, done: bool) -> None:
        now = self._now()
        if now - self._drawn < _REDRAW_S and not done:
            return
        self._drawn = now
        full = int(_BAR * fraction)
        text = f"[{'#' * full}{'.' * (_BAR - full)}] {100 * fraction:3.0f} %{self._left(key, fraction)}"
        width = shutil.get_terminal_size().columns - 1
        fds.say(f"\r{text[:width]:<{min(width, _BAR + 24)}}" if not done else f"\r{'':<{min(width, _BAR + 24)}}\r")

    def _left(self, key: str, fraction: float) -> str:
        """How long it will take at the speed so far."""
        began, first = self._began[key] or (0.0, fraction)
        if fraction <= first or fraction >= 1:
            return ""
        seconds = round((self._now() - began) / (fraction - first) * (1 - fraction))
        return f", {seconds // 60}:{seconds % 60:02} left"
