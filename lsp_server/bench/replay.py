"""A recording typed into an editor with suggestions, and what came of it. Knows no variant, no backend, no table."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.bench.editor import Editor, EditorError, now, offset_of, units
from lsp_server.bench.recording import Session
from lsp_server.bench.typist import PAUSE_MS, REACTION_MS, Change, Stretch, taken, typed
from lsp_server.uris import from_path

_PROJECT = "project"


@dataclass(slots=True)
class Tally:
    """What a user had of it. Times are ms.

    `characters` were to be typed, `saved` of them came with suggestions, for which `taking` keys were pressed.
    `after_key` is from the last key before a pause to the suggestion on the screen, of all `pauses` in which one came;
    `after_request` is from each request to its answer, of those with a suggestion.
    `outcomes` are the server's own counts of requests.
    """

    characters: int = 0
    saved: int = 0
    taking: int = 0
    pressed: int = 0
    requests: int = 0
    shown: int = 0
    kept: int = 0
    partly: int = 0
    rejected: int = 0
    pauses: int = 0
    after_key: list[float] = field(default_factory=list)
    after_request: list[float] = field(default_factory=list)
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def saved_share(self) -> float:
        return self.saved / self.characters if self.characters else 0.0

    def as_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in self.__slots__ if not name.startswith("after")}
        times = {"after_key_ms": spread(self.after_key), "after_request_ms": spread(self.after_request)}
        return {**counts, "saved_share": self.saved_share, "pauses_with_suggestion": len(self.after_key), **times}


def spread(times: Sequence[float]) -> dict[str, float | None]:
    if not times:
        return {"median": None, "p95": None}
    ordered = sorted(times)
    return {"median": statistics.median(ordered), "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]}


@dataclass(slots=True)
class _Visible:
    """A suggestion on the screen. `left` is what typing has left of it, `since` when it came there, ms."""

    item: dict[str, Any]
    id: str
    left: str
    typed: int  # characters of the item's text before the cursor
    since: float
    partly: bool = False


class Replay:
    """Types into one editor. `speed`: all pauses of the user's are so many times shorter. `takes`: suggestions."""

    def __init__(self, editor: Editor, speed: float = 1.0, *, takes: bool = True) -> None:
        self.tally = Tally()
        self._takes = takes
        self._editor = editor
        self._speed = speed
        self._texts: dict[str, str] = {}
        self.uri = ""  # of the file that is typed in
        self._cursor = 0
        self._request = 0
        self._sent = 0.0  # the latest request, ms; the key before it was pressed then
        self.came_ms: float | None = None  # the suggestion on the screen, ms from that key
        self._visible: _Visible | None = None
        self._due = now()  # when the next key is pressed
        editor.answered = self._answered

    async def type(self, sessions: Sequence[tuple[Session, Sequence[Stretch]]], *, stay_ms: float = 0) -> None:
        """`stay_ms`: before the files of a session are closed. Raises EditorError."""
        for session, stretches in sessions:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                await self._session(Path(folder) / _PROJECT, session, stretches, stay_ms)
        counts = (await self._editor.run("midfill.status"))["counts"]
        self.tally.outcomes = {outcome: count for outcome, count in counts.items() if count}

    async def _session(self, root: Path, session: Session, stretches: Sequence[Stretch], stay_ms: float) -> None:
        """`root` becomes a project with the files of the session."""
        for path, text in session.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", newline="")
        project = {"uri": from_path(str(root)), "name": _PROJECT}
        self._editor.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [project], "removed": []}})
        uris = {path: from_path(str(root / path)) for path in session.files}
        for path, text in session.files.items():
            self._texts[uris[path]] = text
            self._editor.open(uris[path], text)
        self._due = now()
        for stretch in stretches:
            await self._go(uris[stretch.path], stretch.pauses_ms[0])
            await self._stretch(stretch)
        await self._pause(stay_ms)
        self._dismiss()
        for uri in uris.values():
            self._editor.close(uri)
        self._editor.notify("workspace/didChangeWorkspaceFolders", {"event": {"added": [], "removed": [project]}})

    async def _go(self, uri: str, pause_ms: float) -> None:
        """To the next place, in the middle of the pause before its first key."""
        await self._pause(pause_ms / 2)
        self._dismiss()
        if uri != self.uri:
            self.uri = uri
            self._editor.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
        await self._pause(pause_ms / 2)

    async def _stretch(self, stretch: Stretch) -> None:
        self.tally.characters += typed(stretch)
        for number, change in enumerate(stretch.removals()):
            await self._press(change, waited=number == 0)
        done = 0
        while done < len(stretch.text):
            if done or stretch.remove:
                await self._pause(stretch.pauses_ms[done])
            if self._takes and (size := self._take(stretch.text[done:])):
                done += size
                continue
            for number, change in enumerate(stretch.keys(done)):
                await self._press(change, waited=number == 0)
            done = stretch.after(done)

    async def _pause(self, pause_ms: float) -> None:
        """Until the next key. What is on the screen by then is what a pause has brought."""
        self._due += pause_ms / self._speed
        await asyncio.sleep(max(0.0, self._due - now()) / 1000)
        if pause_ms >= PAUSE_MS and self._request:
            self.tally.pauses += 1
            if self.came_ms is not None:
                self.tally.after_key.append(self.came_ms)

    async def _press(self, change: Change, *, waited: bool = False) -> None:
        if not waited:
            await self._pause(change.pause_ms)
        self.tally.pressed += 1
        visible = self._visible
        if visible is not None:
            if change.start == change.end == self._cursor and visible.left.startswith(change.text):
                visible.left, visible.typed = visible.left[len(change.text) :], visible.typed + len(change.text)
                if not visible.left:
                    self._visible = None
            else:
                self._reject()
        self._edit(change.start, change.end, change.text)
        self._ask()

    def _edit(self, start: int, end: int, text: str) -> None:
        before = self._texts[self.uri]
        self._texts[self.uri] = before[:start] + text + before[end:]
        self._cursor = start + len(text)
        self._editor.change(self.uri, before, start, end, text)

    def _ask(self) -> None:
        older = self._request
        self._sent, self.came_ms = now(), None
        self.tally.requests += 1
        if older:
            self._editor.cancel(older)
        self._request = self._editor.ask(self.uri, self._texts[self.uri], self._cursor)

    def _answered(self, request: int, items: list[dict[str, Any]] | None) -> None:
        if request != self._request:
            return
        offered = self._offered(items[0]) if items else None
        if items and offered:
            self.came_ms = now() - self._sent
            self.tally.after_request.append(self.came_ms)
            self._show(items[0], *offered)
        else:
            self._visible = None

    def _offered(self, item: dict[str, Any]) -> tuple[str, int] | None:
        """What a suggestion would insert at the cursor, and how much of its text stands before it.

        None if it would do anything else: take the place of what stands behind the cursor and is not in it.
        """
        text = self._texts[self.uri]
        start, end = (offset_of(text, item["range"][name]) for name in ("start", "end"))
        whole, before, behind = item["insertText"], text[start : self._cursor], text[self._cursor : end]
        fits = whole.startswith(before) and whole.endswith(behind) and len(whole) > len(before) + len(behind)
        return (whole[len(before) : len(whole) - len(behind)], len(before)) if fits else None

    def _show(self, item: dict[str, Any], left: str, before: int) -> None:
        suggestion = item["command"]["arguments"][0]
        if self._visible is not None and self._visible.left == left:
            self._visible.item, self._visible.id, self._visible.typed = item, suggestion, before
            return
        self._visible = _Visible(item, suggestion, left, before, now())
        self.tally.shown += 1
        self._editor.notify("textDocument/didShowCompletion", {"item": item})

    def _take(self, coming: str) -> int:
        """Take what is on the screen, if it is right and was seen; how many characters."""
        visible = self._visible
        if visible is None or now() - visible.since < REACTION_MS / self._speed:
            return 0
        size, keys = taken(visible.left, coming)
        if not size:
            return 0
        self.tally.saved += size
        self.tally.taking += keys
        self.tally.pressed += keys
        text = visible.left[:size]
        if size == len(visible.left):
            self.tally.kept += 1
            self._visible = None
            self._editor.run("midfill.accept", visible.id)
        else:
            self.tally.partly += not visible.partly
            visible.partly = True
            visible.left, visible.typed = visible.left[size:], visible.typed + size
            length = units(visible.item["insertText"][: visible.typed])
            part = {"item": visible.item, "acceptedLength": length}
            self._editor.notify("textDocument/didPartiallyAcceptCompletion", part)
        self._edit(self._cursor, self._cursor, text)
        self._ask()
        return size

    def _reject(self) -> None:
        """By typing something else."""
        assert self._visible is not None
        if not self._visible.partly:
            self.tally.rejected += 1
            self._editor.run("midfill.reject", self._visible.id)
        self._visible = None

    def _dismiss(self) -> None:
        """The cursor goes elsewhere."""
        if self._request:
            self._editor.cancel(self._request)
        self._request = 0
        self._visible = None


async def awake(editor: Editor) -> None:
    """Wait until a first request was answered: the model is loaded, the connection is made. Raises EditorError."""
    uri, text = "untitled:first", "def first():\n    return "
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(request: int, items: list[dict[str, Any]] | None) -> None:
        if not done.done():
            done.set_result(None)

    editor.answered = answered
    editor.open(uri, text)
    editor.ask(uri, text, len(text), invoked=True)
    try:
        await asyncio.wait_for(done, 180)
    except TimeoutError:
        raise EditorError("the first request was not answered") from None
    editor.close(uri)
