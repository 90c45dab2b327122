"""What each kind of backend over HTTP costs beside FFM: one request after the other, each kind in turn, one run.

    python benchmarks/kinds.py [--rounds 200] [--json]

Every kind asks its own loopback service, in a process of its own, which answers the same four deltas at once. Wall time
is of a whole request, service included; CPU time is midfill's alone. Differences are taken within each round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends.base import (
    Backend,
    BackendRequest,
    ChatPrompt,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
    SilentObserver,
)
from backends.registry import create
from backends.settings import BackendSettings
from tests.backends.contract import Kind, kind_of, kinds

MORE_MS = 1.0  # the goal: at most so much more CPU time than FFM, median
WARM_UP = 10
KEY = "test-key"
PREFIX, SUFFIX = "def add(a, b):\n    " * 100, "\n\nadd(1, 2)\n" * 20


@contextmanager
def service(kind: Kind) -> Iterator[str]:
    command = [sys.executable, "-m", kind.service.__module__, "--text", "return a + b"]
    root = Path(__file__).resolve().parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def request(backend: Backend) -> BackendRequest:
    shapes = backend.capabilities.shapes
    if Shape.INFILL in shapes:
        return BackendRequest(InfillPrompt(PREFIX, SUFFIX, "a.py"), 32)
    if Shape.RAW in shapes:
        return BackendRequest(RawPrompt((Piece(PREFIX),)), 32)
    return BackendRequest(ChatPrompt((Message("user", PREFIX),)), 32)


async def once(backend: Backend) -> tuple[float, float]:
    """Wall and CPU time of a request, ms."""
    wall, cpu = time.perf_counter(), time.process_time()
    async with aclosing(backend.stream(request(backend))) as deltas:
        text = "".join([delta.text async for delta in deltas])
    assert "a + b" in text, text
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


async def run(urls: dict[str, str], rounds: int) -> dict[str, list[tuple[float, float]]]:
    os.environ["MIDFILL_BENCHMARK_KEY"] = KEY
    backends: dict[str, Backend] = {}
    for name, url in urls.items():
        kind = kind_of(name)
        settings = BackendSettings(
            kind=name, url=url, model=kind.model, key_env="MIDFILL_BENCHMARK_KEY", timeout_s=30, **kind.settings
        )
        backends[name] = create(name, settings, SilentObserver())
        await backends[name].prepare()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in backends}
    for number in range(WARM_UP + rounds):
        # A round begins with another kind each time: what ran before leaves its marks in the caches.
        order = list(backends)[number % len(backends) :] + list(backends)[: number % len(backends)]
        for name in order:
            figures = await once(backends[name])
            if number >= WARM_UP:
                taken[name].append(figures)
    for backend in backends.values():
        await backend.aclose()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with ExitStack() as stack:
        urls = {name: stack.enter_context(service(kind_of(name))) for name in kinds()}
        taken = asyncio.run(run(urls, options.rounds))
    result = {}
    for name, figures in taken.items():
        more = [(own[0] - ffm[0], own[1] - ffm[1]) for own, ffm in zip(figures, taken["ffm"], strict=True)]
        result[name] = {
            "wall_ms": statistics.median(wall for wall, _ in figures),
            "cpu_ms": statistics.median(cpu for _, cpu in figures),
            "more_wall_ms": statistics.median(wall for wall, _ in more),
            "more_cpu_ms": statistics.median(cpu for _, cpu in more),
        }
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"median of {options.rounds} rounds, ms{'wall':>12}{'more than ffm':>16}{'CPU':>8}{'more than ffm':>16}")
    for name, row in result.items():
        print(
            f"{name:<28}{row['wall_ms']:9.2f}{row['more_wall_ms']:16.2f}{row['cpu_ms']:8.2f}{row['more_cpu_ms']:16.2f}"
        )
    print(f"goal: at most {MORE_MS} ms more CPU time than ffm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
