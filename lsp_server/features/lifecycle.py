"""initialize, initialized, shutdown, exit: what the client can do and wants, and when the server starts and ends."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.capabilities import ClientCapabilities, offered, registrations
from lsp_server.features.configuration import section
from lsp_server.protocol import InvalidParamsError
from lsp_server.uris import Root, from_path

if TYPE_CHECKING:
    from lsp_server.server import Server

logger = logging.getLogger(__name__)


def register(server: Server) -> None:
    def initialize(params: Any) -> dict[str, Any]:
        if not isinstance(params, dict):
            raise InvalidParamsError("an object is wanted")
        if server.protocol.initialized:
            raise InvalidParamsError("initialized already")
        client = server.client.capabilities = ClientCapabilities.of(params.get("capabilities"))
        server.roots = _roots(params)
        server.initial_settings = section(params.get("initializationOptions"))
        server.watch_parent(params.get("processId"))
        return {"capabilities": offered(client), "serverInfo": {"name": server.name, "version": server.version}}

    def initialized(params: types.InitializedParams) -> None:
        wanted = registrations(server.client.capabilities)
        if wanted:
            asked = types.RegistrationParams(registrations=wanted)
            server.protocol.send_request(types.CLIENT_REGISTER_CAPABILITY, asked).add_done_callback(_log_refusal)
        server.start()

    def shutdown(params: None) -> None:
        server.protocol.cancel_all()
        server.protocol.shut_down = True

    def exit_(params: None) -> None:
        server.input_ended()

    server.protocol.requests[types.INITIALIZE] = initialize
    server.protocol.requests[types.SHUTDOWN] = shutdown
    server.protocol.notifications[types.INITIALIZED] = initialized
    server.protocol.notifications[types.EXIT] = exit_
    server.protocol.notifications[types.SET_TRACE] = lambda params: None


def _roots(params: dict[str, Any]) -> list[Root]:
    folders = params.get("workspaceFolders")
    if isinstance(folders, list):
        found = [f for f in folders if isinstance(f, dict) and isinstance(f.get("uri"), str)]
        return [Root(folder["uri"], str(folder.get("name") or "")) for folder in found]
    if isinstance(uri := params.get("rootUri"), str):
        return [Root(uri)]
    if isinstance(path := params.get("rootPath"), str) and path:
        try:
            return [Root(from_path(path))]
        except ValueError:
            logger.warning("rootPath is not absolute")
    return []


def _log_refusal(answer: Future[Any]) -> None:
    if not answer.cancelled() and (error := answer.exception()) is not None:
        logger.warning("the client refused a registration: %s", error)
