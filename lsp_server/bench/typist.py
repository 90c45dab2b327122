"""Who types: what they have in mind, when they press which key, and which suggestion they take. Knows no editor.

A recording's run is read as a text that somebody has in mind. Keys go on from where the text stands, so that it does
not matter whether it got there by keys or by a suggestion.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lsp_server.bench.recording import BACKSPACE, Run, Session

REACTION_MS = 250.0  # from a suggestion on the screen to a hand that takes it: a simple reaction to what is seen
PAUSE_MS = 500.0  # between two keys: whoever waits so long may be waiting for a suggestion
LEAST = 4  # characters; for fewer nobody takes a suggestion
KEYS_OF_SESSION = 150  # that are worth opening its files for
_LONGEST_MS = 2000.0  # of a pause: what comes within is here by then
_SHORT = 12  # characters that are taken away one by one; more are selected and go at once
_KEY_MS = 150.0  # before keys that have no pause of their own
# Before a key: drawn around the median, longer where a word or a line begins, where somebody may also stop to think.
_MEDIAN_MS, _SPREAD, _LEAST_MS, _MOST_MS = 130.0, 0.4, 40.0, 600.0
_WORD_TIMES, _LINE_TIMES = 1.5, 2.5
_WORD_THINKS, _LINE_THINKS, _THOUGHT_MS = 0.15, 0.5, (700.0, 3000.0)
_STEP = re.compile(r"\s*(?:\w+|[^\w\s]+)")  # what editors take with "accept word"


@dataclass(frozen=True, slots=True)
class Change:
    """Of a file, `pause_ms` after the one before: text in place of [start, end). Offsets are code points."""

    pause_ms: float
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """`text` is what somebody means to type at `at` of `path`, after taking away `remove` characters there.

    `slips`: offset in the text -> the wrong key that is pressed and taken back there. `pastes`: begin -> end.
    `pauses_ms` has the pause before each offset of the text.
    """

    number: int
    path: str
    at: int
    remove: int
    text: str
    slips: Mapping[int, str] = field(default_factory=dict)
    pastes: Mapping[int, int] = field(default_factory=dict)
    pauses_ms: Sequence[float] = ()

    def removals(self) -> Iterator[Change]:
        """Of what stood there, from its end on; before all else."""
        if self.remove > _SHORT:
            yield Change(self.pauses_ms[0], self.at, self.at + self.remove, "")
            return
        for number in range(self.remove, 0, -1):
            end = self.at + number
            pause = self.pauses_ms[0] if number == self.remove else _KEY_MS
            yield Change(pause, end - 1, end, "")

    def keys(self, done: int) -> list[Change]:
        """What is pressed next where `done` characters stand: mostly one key, three where the first one is wrong."""
        at, pause = self.at + done, self.pauses_ms[done]
        changes = []
        if done in self.slips:
            changes = [Change(pause, at, at, self.slips[done]), Change(2 * _KEY_MS, at, at + 1, "")]
            pause = _KEY_MS
        return [*changes, Change(pause, at, at, self.text[done : self.after(done)])]

    def after(self, done: int) -> int:
        """Where the text stands after the next key. A line end takes the indentation after it along."""
        end = self.pastes.get(done, done + 1)
        while self.text[done] == "\n" and self.text[end : end + 1] in (" ", "\t"):
            end += 1
        return end


def stretches(session: Session, seed: int = 1) -> list[Stretch]:
    """The same pauses each time, however the text comes about."""
    return [_stretch(number, run, random.Random(f"{seed} {number}")) for number, run in enumerate(session.runs)]


def _stretch(number: int, run: Run, draw: random.Random) -> Stretch:
    text, slips, pastes = "", {}, {}
    for part in run.keys:
        if isinstance(part, tuple):
            pastes[len(text)] = len(text) + len(part[0])
            text += part[0]
            continue
        for character in part:
            if character == BACKSPACE:
                slips[len(text) - 1] = text[-1]
                text = text[:-1]
            else:
                text += character
    pauses = [run.pause_ms] + [_pause(text[:i], text[i], draw) for i in range(1, len(text))]
    capped = [min(pause, _LONGEST_MS) for pause in pauses]
    return Stretch(number, run.path, run.at, run.remove, text, slips, pastes, capped)


def _pause(before: str, key: str, draw: random.Random) -> float:
    line = before.rstrip(" \t").endswith("\n")
    word = key.isalnum() and not before[-1].isalnum()
    if draw.random() < (_LINE_THINKS if line else _WORD_THINKS if word else 0):
        return draw.uniform(*_THOUGHT_MS)
    times = _LINE_TIMES if line else _WORD_TIMES if word else 1.0
    return times * min(_MOST_MS, max(_LEAST_MS, _MEDIAN_MS * draw.lognormvariate(0, _SPREAD)))


def chosen(sessions: Sequence[Session], keys: int) -> list[tuple[Session, list[Stretch]]]:
    """About `keys` characters to type, as many of each session; 0: all. What comes after them is left out."""
    if not keys:
        return [(session, stretches(session)) for session in sessions]
    used = sessions[: max(1, min(len(sessions), keys // KEYS_OF_SESSION))]
    found = []
    for number, session in enumerate(used):
        left = keys * (number + 1) // len(used) - keys * number // len(used)
        taken = []
        for stretch in stretches(session):
            if left <= 0:
                break
            whole = 0 in stretch.pastes or len(stretch.text) <= left
            taken.append(stretch if whole else replace(stretch, text=stretch.text[:left]))
            left -= typed(taken[-1])
        found.append((session, taken))
    return found


def typed(stretch: Stretch) -> int:
    """Characters of it that are typed if nothing is suggested."""
    return len(stretch.text) - sum(end - begin for begin, end in stretch.pastes.items())


def states(session: Session, meant: Sequence[Stretch]) -> Iterator[tuple[Stretch, str]]:
    """Each stretch, with its file as it is when its text begins."""
    texts = dict(session.files)
    for stretch in meant:
        text = texts[stretch.path]
        text = text[: stretch.at] + text[stretch.at + stretch.remove :]
        yield stretch, text
        texts[stretch.path] = text[: stretch.at] + stretch.text + text[stretch.at :]


def taken(offered: str, coming: str) -> tuple[int, int]:
    """How many characters of a suggestion somebody takes who is about to type `coming`; and how many keys that is.

    All of it with one key if all is right; else the lines that are, else the words that are, with a key for each.
    (0, 0): not worth it.
    """
    same = 0
    while same < min(len(offered), len(coming)) and offered[same] == coming[same]:
        same += 1
    if same == len(offered):
        return (same, 1) if same >= LEAST else (0, 0)
    lines = offered[:same].rfind("\n")
    if lines >= LEAST:
        return lines, offered[:lines].count("\n") + 1
    size = steps = 0
    for word in _STEP.finditer(offered):
        if word.end() > same or "\n" in word[0]:
            break
        size, steps = word.end(), steps + 1
    return (size, steps) if size >= LEAST else (0, 0)
