"""workspace/executeCommand: one function per command, each taking the list of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.features.models import PULL, pull_command
from lsp_server.protocol import InvalidParamsError

if TYPE_CHECKING:
    from lsp_server.server import Server

_EXPLAINED = 10  # requests, newest first


def register(server: Server) -> None:
    session = server.session

    def accept(arguments: list[Any]) -> None:
        session.tally.accept(_text(arguments))

    def reject(arguments: list[Any]) -> None:
        session.tally.reject(_text(arguments))

    def toggle(arguments: list[Any]) -> dict[str, bool]:
        session.enabled = bool(arguments[0]) if arguments else not session.enabled
        return {"enabled": session.enabled}

    def clear_cache(arguments: list[Any]) -> None:
        session.clear_cache()

    def status(arguments: list[Any]) -> dict[str, Any]:
        return session.status()

    def explain(arguments: list[Any]) -> list[dict[str, Any]]:
        return session.explain(_text(arguments) if arguments else None, _EXPLAINED)

    commands: dict[str, Callable[[list[Any]], Any]] = {  # the names are those of capabilities.COMMANDS
        "midfill.accept": accept,
        "midfill.reject": reject,
        "midfill.toggle": toggle,
        "midfill.clearCache": clear_cache,
        "midfill.status": status,
        "midfill.explain": explain,
        PULL: pull_command(server),
    }

    def execute_command(params: types.ExecuteCommandParams) -> Any:
        command = commands.get(params.command)
        if command is None:
            raise InvalidParamsError("no such command")
        return command(list(params.arguments or ()))

    server.protocol.requests[types.WORKSPACE_EXECUTE_COMMAND] = execute_command


def _text(arguments: list[Any]) -> str:
    if len(arguments) != 1 or not isinstance(arguments[0], str):
        raise InvalidParamsError("one string is wanted")
    return arguments[0]
