"""What `midfill bench` can measure: one module per bench. Imported only by that command.

Each module has `HELP`, `add_arguments(parser)` and `command(arguments) -> exit code`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping

BENCHES: Mapping[str, str] = {
    "context": "lsp_server.bench.context",
    "engine": "lsp_server.bench.engine",
    "infill": "lsp_server.bench.infill",
    "typing": "lsp_server.bench.typing_bench",
    "scenarios": "lsp_server.bench.scenarios",
}


def add_benches(parser: argparse.ArgumentParser) -> None:
    """Give `parser` a subcommand for each bench."""
    names = parser.add_subparsers(metavar="BENCH", required=True)
    for name, module in BENCHES.items():
        bench = importlib.import_module(module)
        own = names.add_parser(
            name, help=bench.HELP, description=bench.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        bench.add_arguments(own)
        own.set_defaults(command=bench.command)
