"""`midfill gateway`: the configured backends behind the HTTP APIs of FFM, Xinference and OpenAI."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os

from backends.base import BackendError
from backends.keys import Key, read_variable
from lsp_server import cli, compose, logs
from lsp_server.commands._terminal import note, tell
from lsp_server.settings import Settings, load

_NEEDED = ("starlette", "uvicorn", "sse_starlette", "anyio")
_MISSING = (
    'the gateway needs the extra "gateway" ({name} is missing): in a checkout of midfill run'
    ' `pip install ".[gateway]"`,'
    " or run `pip install starlette uvicorn sse-starlette` with the pip of the environment midfill runs in"
)
_OPEN = (
    "{host} can be reached from other machines, so that a key is needed: put one into an environment variable and"
    " name it with --key-env NAME"
)

_log = logging.getLogger(__name__)


def command(arguments: argparse.Namespace) -> int:
    try:
        import lsp_server.gateway.serving  # noqa: F401 - first of all, to tell what is missing
    except ModuleNotFoundError as missing:
        name = (missing.name or "").partition(".")[0]
        if name not in _NEEDED:
            raise
        return cli.fail(_MISSING.format(name=name))
    if arguments.config and not arguments.config.is_file():
        return cli.fail(f"{arguments.config}: there is no such file")
    try:
        key = read_variable(arguments.key_env, "the key clients send (--key-env)") if arguments.key_env else None
        logs.setup(arguments.log_file, verbose=arguments.verbose)
    except BackendError as error:
        return cli.fail(error.message)
    except OSError as error:
        return cli.fail(f"cannot write to {error.filename}: {error.strerror}")
    for name in ("uvicorn", "uvicorn.error", "sse_starlette"):
        logging.getLogger(name).setLevel(logging.WARNING)  # they tell what is told here, and every event
    wanted = tuple(filter(None, arguments.backend.split(",")))
    environ = {name: value for name, value in os.environ.items() if name != arguments.key_env}
    # No project file: a gateway serves many projects.
    settings, problems = load(arguments.config, [], environ, None, backend=wanted)
    tell(problems)
    if wanted not in ((), settings.order):
        return cli.USAGE  # told above
    return _serve(arguments.host, arguments.port, settings, key)


def _serve(host: str, port: int, settings: Settings, key: Key | None) -> int:
    from lsp_server.gateway.serving import listen, reaches_this_machine_alone, serve

    observer = _Logging()
    backends = compose.build_backends(settings, observer, at_once=settings.gateway.running)
    refused = [why for backend in backends if (why := compose.refusal(backend, settings))]
    backends = tuple(backend for backend in backends if not compose.refusal(backend, settings))
    if not backends:
        return cli.fail(" ".join(["there is no backend to serve.", *refused]))
    try:
        listening = listen(host, port)
    except OSError as error:
        return cli.fail(f"cannot listen at {host} port {port}: {error.strerror or error}")
    with listening:
        if key is None and not reaches_this_machine_alone(listening):
            return cli.fail(_OPEN.format(host=host))
        address, shown_port = listening.getsockname()[:2]
        where = f"http://{f'[{address}]' if ':' in address else address}:{shown_port}"
        try:
            asyncio.run(
                serve(
                    listening,
                    backends,
                    settings,
                    key,
                    observer,
                    lambda desk: note(f"serving {', '.join(desk.models)} at {where} (Ctrl+C ends it)"),
                )
            )
        except BackendError as error:
            return cli.fail(error.message)
    return cli.DONE


class _Logging:
    """Implements `backends.base.Observer` on the log, where a server's notices belong."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        if key not in self._said:
            self._said.add(key)
            _log.log(logging.WARNING if warning else logging.INFO, "%s", message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if not done and key not in self._said:
            self._said.add(key)
            _log.info("%s …", title)
