"""The local engine beside llama.cpp itself: `midfill bench engine`, from a checkout.

python benchmarks/engine.py [--only speed|keys|cancel] [--rounds N] [--keys N] [--json] …
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lsp_server.cli import run

if __name__ == "__main__":
    sys.exit(run(["bench", "engine", *sys.argv[1:]]))
