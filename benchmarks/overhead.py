"""Time the server adds to a request: a real server process, an FFM service that counts as remote, debounce 0.

    python benchmarks/overhead.py [--requests 300] [--lines 10000] [--documents 20] [--local] [--json]

From the server's own trace: receipt to dispatch (the context is built, the prompt formed) and last delta to answer
(the text is cleaned and fitted). Beside it, what an editor feels: request sent to answer read, with the service's time.
Each request is at another place of the file and follows an edit there, as in typing. Each file holds passwords:
stand-ins take their place in every prompt, and one is put back in most answers. `--local` asks as a model on this
machine is asked, with the text as it is.

Beside other work on all processors some requests wait a slice of the scheduler more, about 4 ms. On Linux
`chrt -r 10 python benchmarks/overhead.py` leaves that out.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.types import ASGIApp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lsp_client import LspClient, client_params, stdio_server
from tests.services.answers import Seen
from tests.services.ffm import Answer, FfmService

MEDIAN_MS, P99_MS = 1.0, 5.0  # the goals
WARM_UP = 20  # requests that are not counted: imports, connection, first use of each converter
SETTINGS = """
backend = "work"
[backends.work]
kind = "ffm"
url = "{url}"
proxy = "{proxy}"
model = "qwen2.5-coder-7b-32k"
key_env = "BENCHMARK_KEY"
[completion]
debounce_ms = 0
speculate = "never"  # with `--local` as without
"""
REMOTE = "http://ffm.invalid/api"  # never looked up: the service itself is the proxy that it is reached through
PASSWORD = "xK9vQ2mL7pR4tZ8w"
SAID, SECRET = 'password = "{}"', 3  # one of so many functions says it
BLOCK = '''def function_{n}(items, limit={n}):
    """Return the first items, at most the limit."""
    found = []
    for item in items:
        if item.value > limit:
            found.append(item)
    return found[:limit]


'''


def source(lines: int, number: int = 0) -> str:
    blocks = [BLOCK.format(n=number * 1000 + n) for n in range(lines // BLOCK.count("\n") + 1)]
    blocks[::SECRET] = [block.replace("found.append(item)", SAID.format(PASSWORD)) for block in blocks[::SECRET]]
    return "".join(blocks)


class Service(FfmService):
    """Reached as a proxy, too: then the whole URL is asked for. Answers with what the prompt says the password is."""

    def answer(self, seen: Seen, *, streamed: bool) -> ASGIApp:
        found = re.search(SAID.format("([A-Za-z0-9]+)"), seen.body["inputs"])
        said = found[1] if found else ""
        self.script = [Answer(deltas=(" + [", *(said[at : at + 4] for at in range(0, len(said), 4)), "]"))]
        return super().answer(seen, streamed=streamed)

    def _server_of_app(self) -> uvicorn.Server:
        server = super()._server_of_app()
        inner: Any = server.config.app

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                path = urlsplit(scope["path"]).path
                scope |= {"path": path, "raw_path": path.encode()}
            await inner(scope, receive, send)

        server.config.app = app
        return server


def run(client: LspClient, requests: int, lines: int, documents: int) -> list[float]:
    """Return the time of each request as the client sees it, in ms."""
    client.initialize(client_params("vim-9.0"))
    for number in range(1, documents):
        client.open(f"file:///project/module_{number}.py", source(500, number))
    uri = "file:///project/main.py"
    client.open(uri, source(lines))
    height, count = BLOCK.count("\n"), lines // BLOCK.count("\n")
    taken = []
    told = 0
    for number in range(WARM_UP + requests):
        line = (number * 7919 % count) * height + 2  # the first line of another function each time
        client.change(uri, number + 2, (line, 12), "x")
        begin = time.perf_counter()
        items = client.items(uri, (line, 13), 2)
        taken.append((time.perf_counter() - begin) * 1000)
        assert items, client.reasons()
        told += PASSWORD in str(items)
    assert told > requests / 2
    assert client.call("shutdown") is None
    client.notify("exit")
    client.wait()
    return taken[WARM_UP:]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--local", action="store_true", help="as with a model on this machine: no secret is replaced")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Service(key="none") as service:
        config, trace = Path(folder) / "config.toml", Path(folder) / "trace.jsonl"
        url, proxy = (service.url, "") if options.local else (REMOTE, service.root)
        config.write_text(SETTINGS.format(url=url, proxy=proxy), encoding="utf-8")
        with stdio_server("--config", str(config), "--trace", str(trace), environ={"BENCHMARK_KEY": "none"}) as client:
            felt = run(client, options.requests, options.lines, options.documents)
        assert options.local or not any(PASSWORD in seen.text for seen in service.log)
        records = [json.loads(line) for line in trace.read_text(encoding="utf-8").split("\n") if line][WARM_UP:]
    rows = {
        "receipt to dispatch": [each["dispatched"] for each in records],
        "last delta to answer": [each["answered"] - each["last_delta"] for each in records],
        "both": [each["dispatched"] + each["answered"] - each["last_delta"] for each in records],
        "sent to read, whole": felt,
    }
    result = {
        name: {"median_ms": statistics.median(values), "p99_ms": percentile(values, 0.99), "max_ms": max(values)}
        for name, values in rows.items()
    }
    if options.json:
        print(json.dumps({"requests": len(records), "lines": options.lines, "documents": options.documents, **result}))
        return 0
    print(f"{len(records)} requests, {options.lines} lines, {options.documents} open documents; ms")
    print(f"{'':24}{'median':>9}{'p99':>9}{'max':>9}")
    for name, values in result.items():
        print(f"{name:24}{values['median_ms']:9.2f}{values['p99_ms']:9.2f}{values['max_ms']:9.2f}")
    print(f"goal for both together: median under {MEDIAN_MS} ms, p99 under {P99_MS} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
