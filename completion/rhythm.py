"""How long to wait for the next key before asking. Must not know what is asked.

The wait follows the user's own pauses between keys: a little longer than most of them, so that no request is begun
between two keys of one word, and no longer than that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from statistics import median

# Pauses between keys, seconds: so many are remembered, fewer than the second number say nothing, and longer ones are
# thought and not typing.
_REMEMBERED = 30
_FEW = 6
_TYPING_S = 0.6

# A wait is so many typical pauses, and between these parts of the setting.
_PAUSES = 1.5
_LEAST, _MOST = 0.5, 2.0

# By where the cursor is: a line or a block begins; a word may go on; there is text behind the cursor on its line.
_BEGINNING, _IN_WORD, _MID_LINE = 0.7, 1.15, 1.3

# Of a slow backend's time to its first text, this part is taken off the wait, but at most that part of the wait.
_LATENCY, _SPARED = 0.2, 0.4

_OPENERS = frozenset("([{:,=.>")


class Rhythm:
    """Pauses between requests of one user, in whatever document."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._pauses: deque[float] = deque(maxlen=_REMEMBERED)

    def key(self, now: float) -> None:
        """The user typed at `now`, seconds of any clock."""
        if self._last is not None and 0 < now - self._last <= _TYPING_S:
            self._pauses.append(now - self._last)
        self._last = now

    def wait(self, base: float, lead: str, rest: str, latencies: Sequence[float], patience: float = 1.0) -> float:
        """Seconds of quiet before a request; `base` is the setting.

        `lead` and `rest` are the cursor's line before and after it, `latencies` the last times to first text, seconds.
        `patience`, from 1 on, lengthens the wait where suggestions are not wanted.
        """
        pause = median(self._pauses) if len(self._pauses) >= _FEW else None
        wait = base if pause is None else min(max(_PAUSES * pause, _LEAST * base), _MOST * base)
        wait *= _place(lead, rest)
        if latencies:
            wait -= min(_LATENCY * median(latencies), _SPARED * wait)
        if pause is not None:
            wait = max(wait, min(pause * 1.1, _MOST * base))  # typing on is never taken for a pause
        return wait * patience


def _place(lead: str, rest: str) -> float:
    if any(character.isalnum() or character == "_" for character in rest):
        return _MID_LINE
    before = lead.rstrip()[-1:]
    if not before or (before in _OPENERS and lead[-1:] in (before, " ", "\t")):
        return _BEGINNING
    return _IN_WORD if lead[-1:].isalnum() or lead[-1:] == "_" else 1.0
