"""`midfill models`: local model files."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from backends._model_file import model_file, unknown
from backends.base import BackendError, ErrorKind
from backends.embedded import DISTRIBUTION, INSTALL, embedded_model
from backends.llama_build import llama_build
from backends.model_store import Reference, all_pulled, pull, pulled, reference_of
from backends.model_table import EMBEDDED, MODELS, recommend
from backends.settings import BackendSettings
from lsp_server import cli, fds
from lsp_server.commands import _models_list
from lsp_server.commands._models_progress import Progress
from lsp_server.commands._terminal import Terminal, note, tell
from lsp_server.settings import LOCAL_DEFAULTS, load

_KIND = LOCAL_DEFAULTS["kind"]


def list_command(arguments: argparse.Namespace) -> int:
    """Print the known models, which of them are here, and the one that suits this machine."""
    machine = _models_list.this_machine(llama_build())
    here = {model.name: str(path) for model in MODELS if (path := _here(model.name))}
    others = {str(reference): str(path) for reference, path in all_pulled().items() if not reference.name}
    best = recommend(machine)
    as_text = _models_list.as_json if arguments.json else _models_list.as_text
    with fds.take_stdout() as out:
        Terminal(out).result(as_text(machine, best, here, others))
    return cli.DONE


def pull_command(arguments: argparse.Namespace) -> int:
    """Bring a model here and print its path."""
    if arguments.model == EMBEDDED.name:
        return path_command(arguments)
    reference = reference_of(arguments.model)
    if reference is None:
        return cli.fail(unknown(arguments.model))
    already = pulled(reference)
    with fds.take_stdout() as out:
        try:
            path = already or pull(reference, Progress())
        except BackendError as error:
            note(error.message)
            return cli.USAGE if error.kind is ErrorKind.SETTINGS else cli.BACKEND_FAILURE
        except KeyboardInterrupt:
            note("interrupted. What has come is kept: the same command goes on from there.")
            return cli.INTERRUPTED
        note(f'{"already here" if already else "done"}. To use it: kind = "{_KIND}" and model = "{reference}".')
        Terminal(out).result(str(path))
    return cli.DONE


def path_command(arguments: argparse.Namespace) -> int:
    """Print the GGUF file of a model, or of the chosen backend, or the embedded one."""
    if arguments.model:
        return _path_of(arguments.model)
    settings, problems = load(arguments.config, [Path.cwd()], os.environ, None)
    tell(problems)
    chosen = [settings.backends[name] for name in settings.order]
    local = next((each for each in chosen if each.kind == _KIND), None)
    if local is None and (settings.order or not settings.untouched):
        if settings.order:
            note(f'the backend {settings.backend} is of kind "{chosen[0].kind}": it uses no model file of this machine')
        return cli.USAGE  # otherwise told above
    if local is None and embedded_model() is None:
        return cli.fail(f"there is no model: {DISTRIBUTION} is not installed, and no backend has a model. {INSTALL}")
    try:
        path = model_file(local or BackendSettings(_KIND))
    except BackendError as error:
        return cli.fail(error.message)
    return _print(path)


def _path_of(name: str) -> int:
    if name != EMBEDDED.name and reference_of(name) is None:
        return cli.fail(unknown(name))
    path = _here(name)
    if path is not None:
        return _print(path)
    reference = reference_of(name)
    note(f"{name} is not here. " + (f"Run `{reference.pull}`." if reference else INSTALL))
    return cli.NO_SUGGESTION


def _here(name: str) -> Path | None:
    reference = reference_of(name)
    return pulled(reference) if isinstance(reference, Reference) else embedded_model()


def _print(path: Path) -> int:
    with fds.take_stdout() as out:
        Terminal(out).result(str(path))
    return cli.DONE
