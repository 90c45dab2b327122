"""Fast typing: 50 keystrokes 30 ms apart, an edit and a request each, against a loopback FFM service.

    python benchmarks/burst.py [--keys 50] [--interval 30] [--json]

Every request is answered; the debounce and the superseding keep nearly all of them from the service.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lsp_client import LspClient, client_params, stdio_server
from tests.services.ffm import Answer, FfmService

BEGUN = 2  # the goal: backend requests at most
SETTINGS = """
backend = "work"
[backends.work]
kind = "ffm"
url = "{url}"
model = "qwen2.5-coder-7b-32k"
key_env = "BENCHMARK_KEY"
[completion]
speculate = "never"  # as with a remote service; one on loopback counts as this machine's
"""
URI = "file:///project/main.py"
TYPED = "result = compute_something(first_argument, second_argument)  # "


def run(client: LspClient, keys: int, interval_ms: float) -> tuple[int, int]:
    """Return the number of answers and of suggestions."""
    client.initialize(client_params("vscode-1.139"), capabilities={})
    client.open(URI, "def compute():\n    \n")
    client.command("midfill.status")
    asked = []
    begin = time.perf_counter()
    for key in range(keys):
        time.sleep(max(0.0, begin + key * interval_ms / 1000 - time.perf_counter()))
        client.change(URI, key + 2, (1, 4 + key), TYPED[key % len(TYPED)])
        asked.append(client.ask(URI, (1, 5 + key), 2))
    answers = [client.result(each)["items"] for each in asked]
    client.call("shutdown")
    client.notify("exit")
    client.wait()
    client.check()
    return len(answers), sum(map(len, answers))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=50)
    parser.add_argument("--interval", type=float, default=30.0, help="ms between two keystrokes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    answer = Answer(deltas=("done", "()"), first_delay_ms=20)
    with tempfile.TemporaryDirectory() as folder, FfmService(key="none", script=[answer]) as service:
        config = Path(folder) / "config.toml"
        config.write_text(SETTINGS.format(url=service.url), encoding="utf-8")
        with stdio_server("--config", str(config), environ={"BENCHMARK_KEY": "none"}) as client:
            answers, suggestions = run(client, options.keys, options.interval)
        begun = service.counts()["begun"]
    result = {"keystrokes": options.keys, "answers": answers, "backend_requests": begun, "suggestions": suggestions}
    if options.json:
        print(json.dumps(result))
        return 0
    for name, value in result.items():
        print(f"{name.replace('_', ' '):18}{value:5}")
    print(f"goal: as many answers as keystrokes, at most {BEGUN} backend requests, 1 suggestion")
    return 0


if __name__ == "__main__":
    sys.exit(main())
