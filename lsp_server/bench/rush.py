"""Fast typing against an FFM service with a fixed latency: how many requests begin, and when the pause brings text.

The service writes its answer at once after that latency: how long an answer takes to write depends on its length.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from completion.settings import CompletionSettings
from lsp_server.bench import stage
from lsp_server.bench.figures import Figure
from lsp_server.bench.recording import Session
from lsp_server.bench.replay import Replay
from lsp_server.bench.stage import Pace
from lsp_server.bench.typist import Stretch
from lsp_server.bench.variants import Variant

KEYS, INTERVAL_MS, LATENCY_MS = 100, 40.0, 300.0
DEBOUNCE_MS = CompletionSettings().debounce_ms
BEGUN_BAR, ALIVE_BAR = 6, 1  # at most
AFTER_BAR_MS = DEBOUNCE_MS + LATENCY_MS + 20.0  # from the last key
_WAIT_MS = 3000.0  # for the suggestion after the last key
_FILE = "def price(items, tax):\n    "
_TEXT = (
    "total = sum(item.price * item.quantity for item in items if item.price)\n"
    "    discount = total * 0.1 if total > 1000 else 0\n"
    "    taxed = (total - discount) * (1 + tax / 100)\n"
    "    return round(taxed, 2)"
)


@dataclass(frozen=True, slots=True)
class Rush:
    """`after_ms` is from the last key to the suggestion, `debounced_ms` what the engine waited of it."""

    name: str
    begun: int
    most_alive: int
    after_ms: float | None
    debounced_ms: float | None

    def figures(self) -> list[Figure]:
        waited = "not at all" if self.debounced_ms is None else f"{self.debounced_ms:.0f} ms"
        note = "no suggestion came" if self.after_ms is None else f"the engine waited {waited} of it"
        return [
            Figure(f"{self.name}: requests begun", self.begun, bar=BEGUN_BAR),
            Figure(f"{self.name}: alive at once", self.most_alive, bar=ALIVE_BAR),
            Figure(f"{self.name}: last key to suggestion", self.after_ms, "ms", AFTER_BAR_MS, note=note),
        ]


async def rushes() -> list[Rush]:
    """Where what the model writes is what is typed, and where it never is. Raises LeftOutError, EditorError."""
    return [await _rush("right answers", 1.0), await _rush("wrong answers", 0.0)]


async def _rush(name: str, hits: float) -> Rush:
    run = [INTERVAL_MS, "rush.py", len(_FILE), 0, [_TEXT]]
    recorded = {"sessions": [{"files": {"rush.py": _FILE}, "runs": [run]}]}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "rush.json"
        path.write_text(json.dumps(recorded), encoding="utf-8")
        pace = Pace(LATENCY_MS, 0.0, 0.0, hits)
        async with stage.ffm(Variant(name), path, 0, pace) as (editor, counts):
            replay = Replay(editor, takes=False)
            await replay.type([(Session({"rush.py": _FILE}, ()), _keys())], stay_ms=_WAIT_MS)
            load = await counts()
            last = await editor.run("midfill.explain", replay.uri)
        debounced = last[0]["debounced"] if last else None
        return Rush(name, load.begun, load.most_alive, replay.came_ms, debounced)


def _keys() -> Sequence[Stretch]:
    text = _TEXT[:KEYS]
    return [Stretch(0, "rush.py", len(_FILE), 0, text, pauses_ms=[INTERVAL_MS] * len(text))]
