"""The local engine beside llama.cpp itself: speed, and prompt tokens evaluated per key of recorded typing.

Every figure is a ratio or a count of one run, so that a busy machine changes it little. llama.cpp alone and its own
server run in child processes, which only a checkout of midfill has (benchmarks/); the server is the package xllamacpp.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from backends._llama_process import environment
from backends._model_file import model_file, model_name, physical_cores
from backends.base import Backend, BackendError
from backends.llama_worker.main import NICE
from backends.settings import BackendSettings
from completion.settings import CompletionSettings, ContextSettings, EngineSettings
from lsp_server import cli, compose, fds
from lsp_server.bench import evaluated, speed
from lsp_server.bench.alone import own_worker
from lsp_server.bench.children import Child, LeftOutError, script
from lsp_server.bench.figures import Figure, shown
from lsp_server.bench.passing import trace_log
from lsp_server.bench.recording import RecordingError, Session, read
from lsp_server.bench.table import number
from lsp_server.commands._terminal import Terminal, note, tell
from lsp_server.settings import LOCAL_DEFAULTS, Settings, load

HELP = "speed of the local engine beside llama.cpp's own, and prompt tokens evaluated per key"
ROUNDS, KEYS = 8, 1200
GROUPS = ("speed", "keys", "cancel")
KEYS_BAR, KEYS_RATIO_BAR = 4.0, 0.5
# About 1,500 tokens of prefix and 300 of suffix where the file has them: the engine's guess of tokens is cautious.
_WINDOWS = EngineSettings(
    completion=CompletionSettings(debounce_ms=0, max_tokens=1, cache_entries=0, prompt_tokens=2800),
    context=ContextSettings(suffix_share=0.16),
)
_CONTEXT = 4096  # tokens
_TIMEOUT_S = 600.0
# As llama.cpp's own presets for llama.vim have it, and as it is without any.
_SERVERS: Mapping[str, Mapping[str, int]] = {
    "llama-server, preset": {"batch": 1024, "cache_reuse": 256},
    "llama-server, default": {"batch": 2048, "cache_reuse": 0},
}
_SERVER_CONTEXT = 16_384


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", action="append", choices=GROUPS, help="measure only this; repeatable")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help=f"of each time; {ROUNDS} if not given")
    parser.add_argument(
        "--keys", type=int, default=KEYS, metavar="N", help=f"of recorded typing; {KEYS} if not given, 0: all"
    )
    parser.add_argument("--backend", metavar="NAME", default="", help="measure this entry of the settings")
    parser.add_argument("--typing", type=Path, metavar="FILE", help="a recording of typing instead of ours")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read this file instead of the user's config.toml")


def command(arguments: argparse.Namespace) -> int:
    settings, problems = load(arguments.config, [], os.environ, None, backend=arguments.backend)
    tell(problems)
    entry = settings.backends.get(settings.backend)
    if entry is None:
        return cli.fail("there is no backend to measure; `midfill doctor` says why")
    if entry.kind != LOCAL_DEFAULTS["kind"]:
        return cli.fail(
            f'the backend {settings.backend} is of kind "{entry.kind}": only local engines are measured here'
        )
    if arguments.rounds < 1:
        return cli.fail("--rounds must be 1 or more")
    with fds.take_stdout() as out, own_worker():
        bench = _Bench(settings, out, arguments)
        try:
            asyncio.run(bench.run(arguments.only or GROUPS))
        except BackendError as error:
            note(error.message)
            return cli.BACKEND_FAILURE
        except RecordingError as error:
            return cli.fail(str(error))
        Terminal(out).result(json.dumps(bench.as_json()) if arguments.json else bench.shown())
    return cli.DONE


class _Bench:
    def __init__(self, settings: Settings, out: BinaryIO, arguments: argparse.Namespace) -> None:
        self._name = settings.backend
        self._settings = settings
        self._out = out
        self._terminal = Terminal(out)
        self._rounds: int = arguments.rounds
        self._keys: int = arguments.keys
        self._typing: Path | None = arguments.typing
        self._threads = settings.backends[self._name].threads or physical_cores()
        self.figures: list[Figure] = []
        self._cells = 0
        self.model = model_name(settings.backends[self._name])

    def as_json(self) -> dict[str, Any]:
        figures = [each.as_json() for each in self.figures]
        return {"model": self.model, "threads": self._threads, "rounds": self._rounds, "figures": figures}

    def shown(self) -> str:
        return f"{self.model}, {self._threads} threads, {self._rounds} rounds\n{shown(self.figures)}"

    async def run(self, groups: Iterable[str]) -> None:
        """Raises BackendError, RecordingError."""
        if "speed" in groups or "cancel" in groups:
            await self._times(groups)
        if "keys" in groups:
            await self._typed()

    async def _times(self, groups: Iterable[str]) -> None:
        source, rounds = _source(), self._rounds
        entry = self._entry(timeout_s=_TIMEOUT_S)
        async with self._backend(entry, self._terminal) as (_, backend):
            if "speed" in groups:
                await self._speed(backend, rounds, source)
            if "cancel" in groups:
                await self._figure("cancel to idle", speed.cancelled(backend, rounds, source))

    async def _speed(self, backend: Backend, rounds: int, source: str) -> None:
        await self._beside_bare(
            {
                # first: what is held beside it slows a small model down
                "decoding, ours to llama.cpp's": lambda bare: speed.decode(backend, bare, rounds),
                "cold prompt to first token": lambda bare: speed.cold_prompt(
                    self._started, backend, bare, rounds, source
                ),
                "first token after a key": lambda bare: speed.keystroke(backend, bare, source),
                "prompt lookup": lambda bare: speed.looked_up(bare, rounds, source),
            }
        )
        await self._figure("candidates", speed.candidates(backend, rounds, source))

    @asynccontextmanager
    async def _started(self) -> AsyncGenerator[Backend]:
        """A worker of its own that holds nothing: no other one has this many cells."""
        self._cells += 1
        entry = self._entry(timeout_s=_TIMEOUT_S, context_tokens=_CONTEXT + self._cells)
        async with self._backend(entry, self._terminal) as (_, backend):
            yield backend

    async def _figure(self, name: str, measured: Awaitable[list[Figure]]) -> None:
        note(f"{name} …")
        try:
            found = await measured
        except LeftOutError as error:
            found = [Figure(name, None, note=str(error))]
        for each in found:  # now, as all of them take minutes
            note(f"  {each.name}: {number(each.value, 3)} {each.unit} {each.note}")
        self.figures += found

    async def _beside_bare(self, figures: Mapping[str, Callable[[Child], Awaitable[list[Figure]]]]) -> None:
        try:
            path = script("bare_llama.py")
        except LeftOutError as error:
            self.figures += [Figure(name, None, note=str(error)) for name in figures]
            return
        async with Child(path, environment()) as bare:
            model = str(model_file(self._entry()))
            await bare.ask("load", path=model, threads=self._threads, context_tokens=_CONTEXT, nice=NICE)
            for name, measure in figures.items():
                await self._figure(name, measure(bare))

    async def _typed(self) -> None:
        try:
            recording = self._typing or script("typing_data.json")
            writer = script("fim_model.py", "gguf")
            sessions = read(recording)
        except LeftOutError as error:
            self.figures.append(Figure("tokens per key", None, "", note=str(error)))
            return
        with tempfile.TemporaryDirectory() as folder:
            for infills, words in ((True, "infill"), (False, "prefix only")):
                # Named so that the prompt family is right.
                path = Path(folder) / f"{'qwen2.5-coder' if infills else 'smollm2'}-tiny.gguf"
                await _written(writer, path, infills=infills)
                await self._typed_with(path, sessions, words, infills=infills)

    async def _typed_with(self, path: Path, sessions: list[Session], words: str, *, infills: bool) -> None:
        note(f"tokens per key, {words} …")
        ours = await self._ours(path, sessions, others=False)
        bar = KEYS_BAR if infills else None
        self.figures.append(Figure(f"tokens per key, {words}: ours", ours.median, "median", bar, note=ours.note))
        servers = []
        for name, sizes in _SERVERS.items():
            title = f"tokens per key, {words}: {name}"
            try:
                server = await self._server(path, sessions, sizes, infills=infills)
            except LeftOutError as error:
                self.figures.append(Figure(title, None, note=str(error)))
                continue
            servers.append(server)
            self.figures.append(Figure(title, server.median, "median", note=server.note))
        if servers:
            least = min(server.mean for server in servers)
            title = f"tokens per key, {words}: ours to the better server's"
            bar = KEYS_RATIO_BAR if infills else None
            self.figures.append(Figure(title, ours.mean / least, "×", bar, note="of the means"))
        ours = await self._ours(path, sessions, others=True)
        title = f"tokens per key, {words}: ours with the other files open"
        self.figures.append(Figure(title, ours.median, "median", note=ours.note))

    async def _ours(self, path: Path, sessions: list[Session], *, others: bool) -> evaluated.Counts:
        # Judging evaluates text, too, but it is no part of the prompt.
        off = MappingProxyType({"judge": False})
        entry = BackendSettings(LOCAL_DEFAULTS["kind"], model_path=str(path), threads=1, parameters=off)
        async with self._backend(entry, self._terminal) as (settings, backend):
            lines: list[str] = []
            traces = trace_log(lines)
            settings = replace(settings, engine=_WINDOWS)
            async with aclosing(compose.build_engine(settings, [backend], traces, self._terminal)) as engine:
                ours = evaluated.Ours(engine, traces, lines, others=others)
                return await evaluated.replay(evaluated.moments(sessions, self._keys), ours.ask)

    async def _server(
        self, path: Path, sessions: list[Session], sizes: Mapping[str, int], *, infills: bool
    ) -> evaluated.Counts:
        async with Child(script("peer_server.py", "xllamacpp"), environment()) as child:
            await child.ask("load", path=str(path), threads=1, context_tokens=_SERVER_CONTEXT, **sizes)
            server = evaluated.Server(child, infills=infills)
            return await evaluated.replay(evaluated.moments(sessions, self._keys), server.ask)

    def _entry(self, **changes: Any) -> BackendSettings:
        return replace(self._settings.backends[self._name], **changes)

    @asynccontextmanager
    async def _backend(self, entry: BackendSettings, terminal: Terminal) -> AsyncGenerator[tuple[Settings, Backend]]:
        """One backend, composed and ready; with the settings it is the only one of. Raises BackendError."""
        backends = MappingProxyType({self._name: entry})
        settings = replace(self._settings, order=(self._name,), backends=backends)
        async with AsyncExitStack() as stack:
            (backend,) = compose.build_backends(settings, terminal)
            await stack.enter_async_context(aclosing(backend))
            await backend.prepare()
            yield settings, backend


def _source() -> str:
    """Real code: this package's."""
    files = sorted(Path(__file__).parent.parent.glob("*.py"))
    return "\n\n".join(path.read_text(encoding="utf-8") for path in files)


async def _written(writer: Path, path: Path, *, infills: bool) -> None:
    more = () if infills else ("--no-infill",)
    process = await asyncio.create_subprocess_exec(sys.executable, str(writer), str(path), *more)
    if await process.wait() != 0:
        raise LeftOutError(f"{writer.name} failed")
