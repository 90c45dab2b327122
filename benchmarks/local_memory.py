"""Memory of the local model's process over many short requests in many documents.

`python benchmarks/local_memory.py [--model FILE] [--requests N] [--documents N] [--json]`. Each request goes to another
place of one of the documents, as typing, jumping and switching files do; now and then one is cancelled, asks for
several answers or is judged. The measure is resident memory after the first tenth of the requests against the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from contextlib import aclosing
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends.base import BackendRequest, Piece, RawPrompt, SilentObserver
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 600  # characters of a prompt
BAR = 1.02


def documents(count: int) -> list[str]:
    sources = sorted(ROOT.glob("[bcl]*/**/*.py"))
    return [f"# {n}\n" + sources[n % len(sources)].read_text(encoding="utf-8")[: 4 * LONGEST] for n in range(count)]


async def one(backend: LlamaCppBackend, text: str, number: int) -> None:
    end = random.randrange(1, len(text))
    kind = number % 10
    request = BackendRequest(
        RawPrompt((Piece(text[max(0, end - LONGEST) : end]),), text[end : end + LONGEST] if kind == 1 else ""),
        max_tokens=0 if kind == 2 else 4,
        first_line=kind == 1,
        candidates=3 if kind == 3 else 1,
    )
    async with aclosing(backend.stream(request)) as deltas:
        async for _ in deltas:
            if kind == 4:
                break


async def measure(model: str, requests: int, count: int) -> list[int]:
    """Resident bytes after each tenth of the requests."""
    settings = BackendSettings("llama-cpp", model_path=model, timeout_s=60, parameters={"judge": True})
    backend, texts, sizes = LlamaCppBackend("memory", settings, SilentObserver()), documents(count), []
    random.seed(1)
    for number in range(1, requests + 1):
        await one(backend, random.choice(texts), number)
        if number % (requests // 10) == 0:
            sizes.append(int(psutil.Process(backend.pid).memory_info().rss))
    await backend.aclose()
    return sizes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="a GGUF file; default: the embedded model")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = asyncio.run(measure(options.model, options.requests, options.documents))
    ratio = max(sizes[1:]) / sizes[0]
    if options.json:
        text = json.dumps({"bytes": sizes, "ratio": ratio, "bar": BAR})
    else:
        shown = " ".join(f"{size / 1e6:.1f}" for size in sizes)
        text = (
            f"MB after each tenth of {options.requests} requests: {shown}\nmost, to the first: {ratio:.4f} (bar {BAR})"
        )
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
