"""`midfill models`: local model files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from backends.embedded import DISTRIBUTION, INSTALL, embedded_model
from lsp_server import cli, fds
from lsp_server.commands._terminal import Terminal, note, tell
from lsp_server.settings import LOCAL_DEFAULTS, load


def path_command(arguments: argparse.Namespace) -> int:
    """Print the GGUF file of the chosen backend, or the embedded one."""
    settings, problems = load(arguments.config, [Path.cwd()], os.environ, None)
    tell(problems)
    chosen = [settings.backends[name] for name in settings.order]
    local = next((each for each in chosen if each.kind == LOCAL_DEFAULTS["kind"]), None)
    if local is None and (settings.order or not settings.untouched):
        if settings.order:
            note(f'the backend {settings.backend} is of kind "{chosen[0].kind}": it uses no model file of this machine')
        return cli.USAGE  # otherwise told above
    path = Path(local.model_path) if local and local.model_path else embedded_model()
    if path is None:
        return cli.fail(
            f"there is no model: {DISTRIBUTION} is not installed, and no backend has a model_path. {INSTALL}"
        )
    if not path.is_file():
        return cli.fail(f"{path}: there is no such file")
    with fds.take_stdout() as out:
        Terminal(out).result(str(path))
    return cli.DONE
