"""How long the local model works on after a cancel: in the middle of a 2,000-token prompt, and while it writes.

`python benchmarks/cancel_local.py [--model FILE] [--rounds N] [--threads N] [--json]`. Measured in the parent, from
the cancel to the child's word that it is idle, at a random moment of the work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends._llama_process import LlamaProcess, Question
from backends._model_file import model_file, physical_cores
from backends.settings import BackendSettings

ROOT = Path(__file__).resolve().parent.parent
PROMPT_CHARACTERS = 8_000  # about 2,000 tokens of code
CONTEXT_TOKENS = 4096


def ask(process: LlamaProcess, text: str) -> Question:
    return process.ask(
        "generate",
        prompt={"kind": "raw", "pieces": [(text, False)]},
        max_tokens=2000,
        temperature=0.0,
        stop=[],
        parameters={},
        debug=True,
    )


async def until(question: Question, field: str) -> dict[str, Any]:
    while field not in (reply := await question.next()):
        pass
    return reply


async def cancel(process: LlamaProcess, question: Question, within_s: float) -> float:
    """Milliseconds until the child is idle, after a random part of `within_s`."""
    await asyncio.sleep(random.random() * within_s)
    began = time.perf_counter()
    question.drop()
    await process.idle.wait()
    return (time.perf_counter() - began) * 1e3


async def measure(path: Path, rounds: int, threads: int) -> dict[str, list[float]]:
    source = (ROOT / "backends" / "llama_cpp.py").read_text(encoding="utf-8")[:PROMPT_CHARACTERS]
    process = await LlamaProcess.start()
    sizes = {"context_tokens": CONTEXT_TOKENS, "threads": threads, "gpu_layers": 0, "kv_type": "f16"}
    await until(process.ask("load", path=str(path), **sizes), "done")
    result: dict[str, list[float]] = {"prompt": [], "decoding": []}
    for number in range(rounds):
        question = ask(process, f"# {number}\n{source}")  # nothing of the last prompt can be reused
        began = time.perf_counter()
        await until(question, "evaluated")
        result["prompt"].append(await cancel(process, question, time.perf_counter() - began))
        question = ask(process, "def count():\n    return [1, 2, 3,")
        await until(question, "text")
        result["decoding"].append(await cancel(process, question, 0.1))
    await process.aclose()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="a GGUF file; default: the embedded model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    threads = options.threads or physical_cores()
    model = model_file(BackendSettings("llama-cpp", model_path=options.model))
    measured = asyncio.run(measure(model, options.rounds, threads))
    table = {
        name: {"median_ms": statistics.median(times), "max_ms": max(times), "rounds": len(times)}
        for name, times in measured.items()
    }
    if options.json:
        print(json.dumps({"threads": threads, **table}))
        return
    print(f"{'cancelled while':<18}{'median':>10}{'max':>10}   ms, {options.rounds} rounds, {threads} threads")
    for name, row in table.items():
        print(f"{name:<18}{row['median_ms']:>10.1f}{row['max_ms']:>10.1f}")


if __name__ == "__main__":
    main()
