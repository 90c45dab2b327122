"""How fast a cancel works: `$/cancelRequest` sent to its answer read, and to the service seeing the connection close.

    python benchmarks/cancel.py [--requests 50] [--local] [--json]

A real server process; the FFM service holds every answer back. `--local` asks the embedded model instead and cancels
while it evaluates a prompt of about 2,000 tokens; when the model is idle again is measured by cancel_local.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lsp_client import LspClient, LspError, client_params, stdio_server
from tests.services.ffm import Answer, FfmService

ANSWER_MS, CLOSE_MS = 20.0, 100.0  # the goals
FFM = """
backend = "work"
[backends.work]
kind = "ffm"
url = "{url}"
model = "qwen2.5-coder-7b-32k"
key_env = "BENCHMARK_KEY"
[completion]
debounce_ms = 0
max_candidates = 1
speculate = "never"
"""
LOCAL = """
backend = "local"
[backends.local]
kind = "llama-cpp"
timeout_s = 100
[completion]
debounce_ms = 0
max_candidates = 1
speculate = "never"
"""
URI = "file:///project/main.py"
REQUESTS_OF_A_LOCAL_RUN = 5
EVALUATING_S = 0.5  # after this the model is in the middle of 2,000 tokens on any machine


def cancelled_ms(client: LspClient, asked: object) -> tuple[float, float]:
    """Cancel a request; return the moment (time.monotonic) and how long the answer took."""
    sent, begin = time.monotonic(), time.perf_counter()
    client.cancel(asked)
    try:
        client.result(asked)
    except LspError as error:
        if error.code == -32800:
            return sent, (time.perf_counter() - begin) * 1000
    raise AssertionError("the request was answered as if it had not been cancelled")


def ffm(requests: int, config: Path) -> dict[str, list[float]]:
    answers, closings = [], []
    with FfmService(key="none", script=[Answer(hold_after=1)]) as service:
        config.write_text(FFM.format(url=service.url), encoding="utf-8")
        with stdio_server("--config", str(config), environ={"BENCHMARK_KEY": "none"}) as client:
            client.initialize(client_params("vim-9.0"))
            client.open(URI, "x = 1\n" * 200)
            for number in range(requests):
                client.change(URI, number + 2, (number, 0), "#")
                asked = client.ask(URI, (number, 5), 2)
                asyncio.run(service.until(generating=number + 1))
                sent, taken = cancelled_ms(client, asked)
                asyncio.run(service.until(disconnected=number + 1))
                closed = service.log[number].disconnected
                assert closed is not None
                answers.append(taken)
                closings.append((closed - sent) * 1000)
            end(client)
    return {"answer": answers, "connection closed": closings}


def local(config: Path) -> dict[str, list[float]]:
    config.write_text(LOCAL, encoding="utf-8")
    answers = []
    with stdio_server("--config", str(config)) as client:
        client.initialize(client_params("vim-9.0"))
        client.open(URI, "x = \n")
        client.items(URI, (0, 4))  # the model is loaded
        for number in range(REQUESTS_OF_A_LOCAL_RUN):
            client.open(URI, f"# {number}\n" + f"value_{number} = compute({number}, 'text')\n" * 400)
            asked = client.ask(URI, (401, 0), 2)
            time.sleep(EVALUATING_S)
            answers.append(cancelled_ms(client, asked)[1])
        end(client)
    return {"answer, local model": answers}


def end(client: LspClient) -> None:
    client.call("shutdown")
    client.notify("exit")
    client.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--local", action="store_true", help="the embedded model instead of the service")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.toml"
        rows = local(config) if options.local else ffm(options.requests, config)
    result = {name: {"median_ms": statistics.median(v), "max_ms": max(v), "runs": len(v)} for name, v in rows.items()}
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"{'from cancel to, ms':24}{'median':>9}{'max':>9}")
    for name, values in result.items():
        print(f"{name:24}{values['median_ms']:9.2f}{values['max_ms']:9.2f}")
    print(f"goals: answer {ANSWER_MS:g} ms, connection closed {CLOSE_MS:g} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
