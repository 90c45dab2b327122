"""Time from process start to the answer of `initialize`, beside what importing pygls alone takes.

    python benchmarks/startup.py [--runs 11] [--json]

The two are run in turns, so that a busy machine slows both; what counts is the ratio of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.lsp_client import client_params, stdio_server

GOAL = 1.3  # initialize / import


def import_ms() -> float:
    """Until the import is done, not until the process has ended."""
    code = "import pygls.lsp.server, sys; sys.stdout.write('.'); sys.stdout.flush()"
    begin = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return (time.perf_counter() - begin) * 1000


def initialize_ms() -> float:
    begin = time.perf_counter()
    with stdio_server() as client:
        client.call("initialize", client_params("vscode-1.139"))
        taken = (time.perf_counter() - begin) * 1000
        client.call("shutdown")
        client.notify("exit")
        client.wait()
        return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    import_ms(), initialize_ms()  # byte code and file cache
    pairs = [(import_ms(), initialize_ms()) for _ in range(options.runs)]
    imported, initialized = (statistics.median(times) for times in zip(*pairs, strict=True))
    result = {"import_ms": imported, "initialize_ms": initialized, "ratio": initialized / imported, "goal": GOAL}
    if options.json:
        print(json.dumps(result))
    else:
        print(f"python -c 'import pygls.lsp.server'   {imported:7.0f} ms")
        print(f"process start to initialize answered  {initialized:7.0f} ms")
        print(f"ratio                                 {initialized / imported:7.2f}  (goal: at most {GOAL})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
