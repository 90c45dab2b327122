"""What the user changed lately, in this file and others, as the code now stands there. Must not know how it is ranked.

Nothing is done per key: a text that was edited shares its untouched leaves with the text before, so that what changed
since the last look is found when somebody asks. The code is shown and not a diff: models that infill were trained on
files, and what was taken out is not what should be suggested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from completion.context.base import Look, Snippet
from completion.context.leaves import Leaf, leaves, lines_of, name_of, normal
from completion.types import DocumentSnapshot, Text

# The constants of Copilot's completions for VS Code (its public source): edits that are shown, files that are watched,
# lines around an edit, lines between two that are shown as one, lines and code points of one.
EDITS, FILES, AROUND, DISTANCE, LINES, CHARACTERS = 8, 20, 3, 1, 10, 2000

# More lines at once come from a formatter or another branch, not from the user's mind.
_BULK = 200

# The last edit, and how much less each earlier one counts.
_SCORE, _EARLIER = 0.45, 0.9


@dataclass(slots=True)
class _Edit:
    """Lines that were written (first, one past the last), and when: a running number."""

    first: int
    end: int
    when: int


@dataclass(slots=True)
class _Seen:
    text: Text
    parts: Sequence[Leaf]
    edits: list[_Edit]


class RecentEdits:
    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._when = 0

    def forget(self, uri: str) -> None:
        self._seen.pop(uri, None)

    def snippets(self, look: Look) -> list[Snippet]:
        documents = [look.context.document, *look.context.others]
        edited = {each.uri: each for each in reversed(documents) if not look.ignored(each)}
        for document in edited.values():  # the one viewed last at the end
            self._look_at(document)
        edits = [(edit, uri) for uri in edited for edit in self._seen[uri].edits]
        edits.sort(key=lambda pair: -pair[0].when)
        kept = dict.fromkeys(uri for _, uri in edits)
        for uri in list(kept)[FILES:]:
            self._seen[uri].edits.clear()
        found: list[Snippet] = []
        for edit, uri in edits:
            snippet = _shown(edit, edited[uri], self._seen[uri].parts, look, _SCORE * _EARLIER ** len(found))
            if snippet is not None:
                found.append(snippet)
            if len(found) == EDITS:
                break
        return found

    def _look_at(self, document: DocumentSnapshot) -> None:
        seen = self._seen.get(document.uri)
        if seen is None:
            before = document.opened or document.text
            seen = self._seen[document.uri] = _Seen(before, leaves(before), [])
        if seen.text is document.text:
            return
        parts = leaves(document.text)
        for first, end, by in changes(seen.parts, parts):
            self._when += 1
            _move(seen.edits, first, end, by)
            if 0 < end - first <= _BULK:
                seen.edits.append(_Edit(first, end, self._when))
        seen.edits = _merged(seen.edits)[-EDITS:]
        seen.text, seen.parts = document.text, parts


def changes(old: Sequence[Leaf], new: Sequence[Leaf]) -> list[tuple[int, int, int]]:
    """Which lines of `new` are not those of `old`: (first, one past the last, lines more than before), from the top.

    Lines that are gone leave an empty range. Shared leaves are not looked into.
    """
    head = 0
    while head < min(len(old), len(new)) and old[head] is new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] is new[-1 - tail]:
        tail += 1
    first = sum(map(len, new[:head]))
    before = [line for leaf in old[head : len(old) - tail] for line in leaf]
    after = [line for leaf in new[head : len(new) - tail] for line in leaf]
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    first += head
    before, after = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(before), len(after)) > _BULK or not (before and after):
        return [(first, first + len(after), len(after) - len(before))] if before or after else []
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        (first + low, first + high, high - low - (end - begin))
        for kind, begin, end, low, high in codes
        if kind != "equal"
    ]


def _move(edits: list[_Edit], first: int, end: int, by: int) -> None:
    """Keep the places of earlier edits after [first, end) was written, `by` lines longer than what it replaced.

    What it was written over is no edit any more.
    """
    old_end = end - by
    kept = []
    for edit in edits:
        if edit.first >= old_end and edit.end > first:
            edit.first, edit.end = edit.first + by, edit.end + by
        elif edit.end > first:
            above, below = first - edit.first, edit.end - old_end
            if above > 0 and below > 0:
                edit.end += by
            elif above > 0:
                edit.end = first
            elif below > 0:
                edit.first, edit.end = end, end + below
            else:
                continue
        kept.append(edit)
    edits[:] = kept


def _merged(edits: list[_Edit]) -> list[_Edit]:
    """Those close to each other as one, as new as the newer one; in order of time."""
    merged: list[_Edit] = []
    for edit in sorted(edits, key=lambda edit: edit.first):
        if merged and edit.first - merged[-1].end <= DISTANCE:
            last = merged[-1]
            last.end, last.when = max(last.end, edit.end), max(last.when, edit.when)
        else:
            merged.append(edit)
    return sorted(merged, key=lambda edit: edit.when)


def _shown(edit: _Edit, document: DocumentSnapshot, parts: Sequence[Leaf], look: Look, score: float) -> Snippet | None:
    """The edit with the lines around it: its end if it is long, as that was written last. None if it is in sight."""
    end = edit.end + AROUND
    first = max(0, edit.first - AROUND)
    if document.uri == look.context.document.uri and look.shown[0] <= edit.first and edit.end <= look.shown[1]:
        return None
    if end - first > LINES:
        end = max(edit.end, first + LINES)
        first = end - LINES
    lines = lines_of(parts, first, end)
    while lines and sum(map(len, lines)) > CHARACTERS:
        del lines[0]
        first += 1
    text = normal("".join(lines))
    if not text.strip():
        return None
    return Snippet("recent_edits", name_of(document), text, score, document.uri, (first, first + len(lines)))
