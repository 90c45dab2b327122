"""One server process and what answers it, for `midfill bench typing`: started, typed into, counted, ended."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lsp_server.bench.alone import own_worker
from lsp_server.bench.children import Child, LeftOutError
from lsp_server.bench.counted import NOTHING_AHEAD
from lsp_server.bench.editor import Editor, child_environment
from lsp_server.bench.oracle import HITS
from lsp_server.bench.replay import awake
from lsp_server.bench.variants import Variant
from lsp_server.settings import load

LOCAL, FFM = "local", "ffm"
_HOST = "http://ffm.invalid/api"  # never looked up: the service is reached as a proxy
SERVICE = Path(__file__).parent / "service.py"
_MODEL = "qwen2.5-coder-7b-32k"
_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a backend was asked: requests `begun`, those `cancelled` before any text came, the most alive at once, and
    tokens of prompts `evaluated`.

    `ahead` are requests that only have a prompt evaluated; they count neither as begun nor as cancelled.
    """

    begun: int
    cancelled: int
    most_alive: int
    evaluated: int
    ahead: int = 0

    def as_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Pace:
    """Of the FFM service: median ms to the first token, deviation of its logarithm, ms between tokens, words known."""

    latency_ms: float = 300.0
    spread: float = 0.25
    token_ms: float = 15.0
    hits: float = HITS


Counts = Callable[[], Awaitable[Load]]


@asynccontextmanager
async def local(variant: Variant) -> AsyncGenerator[tuple[Editor, Counts]]:
    """A server with the embedded model. Raises LeftOutError, EditorError."""
    settings = {**variant.settings, "backend": LOCAL}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        config, path = empty_config(Path(folder)), Path(folder) / "counted"
        if not load(config, [], {}, settings)[0].order:
            raise LeftOutError("the extra `local` is not installed")
        stack.enter_context(own_worker())
        environment = child_environment(**({} if variant.ahead else {NOTHING_AHEAD: "1"}))
        command = ["-m", "lsp_server.bench.counted", str(path), "serve", "--config", str(config)]
        async with Editor(command, environment) as editor:
            await editor.start(settings)
            await awake(editor)
            skipped = len(_lines(path))

            async def counts() -> Load:
                return _counted(map(json.loads, _lines(path)[skipped:]))

            yield editor, counts
            await editor.stop()


@asynccontextmanager
async def ffm(variant: Variant, recording: Path, keys: int, pace: Pace) -> AsyncGenerator[tuple[Editor, Counts]]:
    """A server with an FFM service on loopback, which knows the recording. Raises LeftOutError, EditorError."""
    if importlib.util.find_spec("uvicorn") is None:
        raise LeftOutError("the extra `gateway` is not installed (uvicorn is missing)")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with Child(SERVICE, child_environment()) as child:
            asked = {"recording": str(recording), "keys": keys, "hits": pace.hits, "latency_ms": pace.latency_ms}
            url = (await child.ask("serve", **asked, spread=pace.spread, pace_ms=pace.token_ms))["url"]
            entry = {"kind": FFM, "url": _HOST, "proxy": url, "model": _MODEL, "timeoutS": _TIMEOUT_S}
            command = ["-m", "lsp_server", "serve", "--config", str(empty_config(Path(folder)))]
            async with Editor(command, child_environment()) as editor:
                await editor.start({**variant.settings, "backend": "work", "backends": {"work": entry}})
                await awake(editor)
                await child.ask("reset")

                async def counts() -> Load:
                    return Load(**await child.ask("counts"))

                yield editor, counts
                await editor.stop()


def empty_config(folder: Path) -> Path:
    """A settings file without settings."""
    path = folder / "config.toml"
    path.write_text("", encoding="utf-8")
    return path


def _lines(path: Path) -> Sequence[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def _counted(records: Iterable[Mapping[str, Any]]) -> Load:
    begun = cancelled = most = alive = evaluated = ahead = 0
    for record in records:
        asked = not record["ahead"]
        if record["event"] == "begun":
            begun, ahead, alive = begun + asked, ahead + (not asked), alive + asked
            most = max(most, alive)
            continue
        evaluated += record["evaluated"]
        cancelled += asked and record["cancelled"]
        alive = max(0, alive - asked)  # what began before the counting may end within
    return Load(begun, cancelled, most, evaluated, ahead)
