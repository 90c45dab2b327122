"""Prompt tokens a local model evaluates per keystroke: the embedded model, typing at the end of a long prompt.

    python benchmarks/keystrokes.py [--keys 200] [--tokens 2000] [--json]

A real server process; every key is an edit and a request that is waited for. From the server's own trace: prompt tokens
less those found in the KV cache. The result cache is off, so that every key reaches the model.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lsp_client import LspClient, client_params, stdio_server

ROOT = Path(__file__).resolve().parent.parent
EVALUATED = 3.0  # the goal: mean tokens per request, the first one aside
CHARACTERS = 3.9  # of Python code per token of the embedded model
SETTINGS = """
backend = "local"
[backends.local]
timeout_s = 300
[completion]
prompt_tokens = 3800  # as the engine estimates them: a full window of 2,000 and more of the model's own
max_tokens = 8
cache_entries = 0
debounce_ms = 0
"""
URI = "file:///project/main.py"


def source() -> str:
    """Some thousand lines of real code: ours."""
    names = sorted(path for folder in ("completion", "backends") for path in (ROOT / folder).rglob("*.py"))
    return "\n\n".join(path.read_text(encoding="utf-8") for path in names)


def run(client: LspClient, keys: int, tokens: int) -> None:
    client.initialize(client_params("vim-9.0"))
    text = source()
    begin = text.index("\n", int(tokens * CHARACTERS)) + 1
    document = text[:begin]
    client.open(URI, document)
    line, column = document.count("\n"), 0
    for key, character in enumerate(text[begin : begin + keys + 1]):
        client.items(URI, (line, column), 1)
        client.change(URI, key + 2, (line, column), character)
        line, column = (line + 1, 0) if character == "\n" else (line, column + 1)
    client.call("shutdown")
    client.notify("exit")
    client.wait()
    client.check()


def figures(trace: Path) -> dict[str, Any]:
    records = [json.loads(line) for line in trace.read_text(encoding="utf-8").split("\n") if line]
    records = [record for record in records if record["reason"] != "ahead"]  # nobody waits for these
    asked = [record for record in records if record["cache"] == "miss" and record["prompt_tokens"] is not None]
    evaluated = [record["prompt_tokens"] - record["reused_tokens"] for record in asked]
    first, later = evaluated[0], evaluated[1:]
    waits = [record["first_delta"] - record["dispatched"] for record in asked[1:] if record["first_delta"]]
    return {
        "requests": len(records),
        "reached_the_model": len(asked),
        "prompt_tokens": asked[-1]["prompt_tokens"],
        "evaluated_first": first,
        "evaluated_mean": statistics.mean(later),
        "evaluated_median": statistics.median(later),
        "evaluated_max": max(later),
        "first_delta_median_ms": statistics.median(waits) if waits else None,
        "goal_met": statistics.mean(later) < EVALUATED,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=2000, help="of the prompt before the first key, about")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config, trace = Path(folder) / "config.toml", Path(folder) / "trace.jsonl"
        config.write_text(SETTINGS, encoding="utf-8")
        with stdio_server("--config", str(config), "--trace", str(trace)) as client:
            run(client, options.keys, options.tokens)
        result = figures(trace)
    if options.json:
        print(json.dumps(result))
        return 0
    for name, value in result.items():
        print(f"{name:<24} {value:.1f}" if isinstance(value, float) else f"{name:<24} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
