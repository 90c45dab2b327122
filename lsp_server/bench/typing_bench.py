"""Recorded edits typed key by key into a real server process, as a person does in an editor, and what came of it.

Who types takes suggestions that are what comes next anyway, after a moment to see them, and types on otherwise. The
answers come from the embedded model, and from an FFM service on loopback that knows the recording and is as slow and as
often wrong as it is told. Each is measured again without one part of the request policy each. The pauses are those of
a person: a hundred keys take about half a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsp_server import cli, fds
from lsp_server.bench import stage
from lsp_server.bench.children import LeftOutError
from lsp_server.bench.editor import EditorError
from lsp_server.bench.figures import shown
from lsp_server.bench.recording import RecordingError, Session, read
from lsp_server.bench.replay import Replay, Tally, spread
from lsp_server.bench.rush import Rush, rushes
from lsp_server.bench.stage import FFM, LOCAL, Load, Pace
from lsp_server.bench.table import number, table
from lsp_server.bench.typist import chosen
from lsp_server.bench.variants import Variant, known
from lsp_server.commands._terminal import Terminal, note

HELP = "characters saved, requests and waiting, with recorded edits typed into a real server"
KEYS = 600
RUSH = "rush"
RECORDING = Path(__file__).parent / "typing_sessions.json"
_TITLES = {LOCAL: "the embedded model", FFM: "an FFM service on loopback"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    pace = Pace()
    parser.add_argument("--only", action="append", choices=(LOCAL, FFM, RUSH), help="measure only this; repeatable")
    parser.add_argument(
        "--keys", type=int, default=KEYS, metavar="N", help=f"of the recording; {KEYS} if not given, 0: all"
    )
    parser.add_argument("--speed", type=float, default=1.0, metavar="F", help="divide the pauses of who types by F")
    parser.add_argument("--variant", action="append", metavar="NAME", help="only this row; repeatable")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="rows with the FFM service side by side")
    parser.add_argument(
        "--latency", type=float, default=pace.latency_ms, metavar="MS", help="median of the FFM service's first token"
    )
    parser.add_argument("--hits", type=float, default=pace.hits, metavar="SHARE", help="of words that it knows")
    parser.add_argument("--typing", type=Path, default=RECORDING, metavar="FILE", help="a recording instead of ours")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(config=None)


def command(arguments: argparse.Namespace) -> int:
    if arguments.speed <= 0 or arguments.keys < 0 or arguments.at_once < 1 or not 0 <= arguments.hits <= 1:
        return cli.fail("--speed must be above 0, --keys 0 or more, --at-once 1 or more, --hits from 0 to 1")
    try:
        sessions = read(arguments.typing)
    except RecordingError as error:
        return cli.fail(str(error))
    bench = _Bench(arguments, sessions)
    if unknown := set(arguments.variant or ()) - {each.name for each in bench.variants}:
        names = ", ".join(f'"{each.name}"' for each in bench.variants)
        return cli.fail(f"there is no row {sorted(unknown)[0]!r}; there are {names}")
    with fds.take_stdout() as out:
        try:
            asyncio.run(bench.run(arguments.only or (FFM, RUSH, LOCAL)))
        except EditorError as error:
            note(str(error))
            return cli.BACKEND_FAILURE
        Terminal(out).result(json.dumps(bench.as_json()) if arguments.json else bench.shown())
    return cli.DONE


class _Bench:
    def __init__(self, arguments: argparse.Namespace, sessions: Sequence[Session]) -> None:
        self._recording: Path = arguments.typing
        self._keys: int = arguments.keys
        self._speed: float = arguments.speed
        self._at_once = asyncio.Semaphore(arguments.at_once)
        self._pace = Pace(arguments.latency, hits=arguments.hits)
        self._sessions = chosen(sessions, arguments.keys)
        self._wanted: Sequence[str] = arguments.variant or ()
        with tempfile.TemporaryDirectory() as folder:
            self.variants, self.left_out = known(stage.empty_config(Path(folder)))
        self._rows: dict[str, list[tuple[str, Tally, Load]]] = {}
        self._rushes: list[Rush] = []

    async def run(self, groups: Sequence[str]) -> None:
        """Raises EditorError."""
        for group in groups:
            note(f"{_TITLES.get(group, group)} …")
            try:
                if group == RUSH:
                    self._rushes = await rushes()
                else:
                    self._rows[group] = await self._group(group)
            except LeftOutError as error:
                self.left_out[_TITLES.get(group, group)] = str(error)

    async def _group(self, group: str) -> list[tuple[str, Tally, Load]]:
        rows = [each for each in self.variants if each.only in ("", group)]
        rows = [each for each in rows if not self._wanted or each.name in self._wanted]
        if group == LOCAL:
            return [await self._local(each) for each in rows]
        async with asyncio.TaskGroup() as tasks:
            found = [tasks.create_task(self._ffm(each)) for each in rows]
        return [each.result() for each in found]

    async def _local(self, variant: Variant) -> tuple[str, Tally, Load]:
        async with stage.local(variant) as (editor, counts):
            return await self._row(variant, Replay(editor, self._speed), counts)

    async def _ffm(self, variant: Variant) -> tuple[str, Tally, Load]:
        async with self._at_once, stage.ffm(variant, self._recording, self._keys, self._pace) as (editor, counts):
            return await self._row(variant, Replay(editor, self._speed), counts)

    async def _row(self, variant: Variant, replay: Replay, counts: stage.Counts) -> tuple[str, Tally, Load]:
        await replay.type(self._sessions)
        note(f"  {variant.name}: {replay.tally.saved_share:.1%} saved")  # rows take minutes
        return variant.name, replay.tally, await counts()

    def as_json(self) -> dict[str, Any]:
        rows = {
            group: [{"name": name, **tally.as_json(), "backend": load.as_json()} for name, tally, load in rows]
            for group, rows in self._rows.items()
        }
        rush = [figure.as_json() for each in self._rushes for figure in each.figures()]
        return {**self._about(), "rows": rows, "rush": rush, "left_out": self.left_out}

    def _about(self) -> dict[str, Any]:
        pace = {"latency_ms": self._pace.latency_ms, "token_ms": self._pace.token_ms, "hits": self._pace.hits}
        return {"sessions": len(self._sessions), "speed": self._speed, "service": pace}

    def shown(self) -> str:
        pace = self._pace
        parts = [table_of(f"{_TITLES[group]}, {self._how(group)}", rows) for group, rows in self._rows.items()]
        if self._rushes:
            figures = [figure for each in self._rushes for figure in each.figures()]
            parts.append(f"100 keys, 40 ms apart, an FFM service with {pace.latency_ms:.0f} ms\n{shown(figures)}")
        if self.left_out:
            parts.append("\n".join(f"left out: {name}: {why}" for name, why in self.left_out.items()))
        return "\n\n".join(parts)

    def _how(self, group: str) -> str:
        pace = self._pace
        service = f"{pace.latency_ms:.0f} ms to the first token, knows {pace.hits:.0%} of the words, "
        pauses = "pauses as they are" if self._speed == 1 else f"pauses divided by {self._speed:g}"
        return f"{service if group == FFM else ''}{len(self._sessions)} sessions, {pauses}"


_HEADS = (
    *("", "saved", "shown", "kept", "in part", "rejected", "asked", "cancelled", "alive", "tokens"),
    *("key, ms", "p95", "request, ms", "p95"),
)


def table_of(title: str, rows: Sequence[tuple[str, Tally, Load]]) -> str:
    cells = []
    for name, tally, load in rows:
        hundred = 100 / max(1, tally.characters)
        key, request = spread(tally.after_key), spread(tally.after_request)
        cells.append(
            (
                name,
                f"{tally.saved_share:.1%}",
                *(str(count) for count in (tally.shown, tally.kept, tally.partly, tally.rejected)),
                f"{load.begun * hundred:.1f}",
                f"{load.cancelled * hundred:.1f}",
                str(load.most_alive),
                f"{load.evaluated * hundred:.0f}",
                *(number(times[share], 0) for times in (key, request) for share in ("median", "p95")),
            )
        )
    count = max((tally.characters for _, tally, _ in rows), default=0)
    return f"{title}: {count} keys; asked, cancelled and tokens of 100\n{table(_HEADS, cells)}"
