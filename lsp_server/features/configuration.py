"""Settings from the client: asked for, pushed, or changed in a project file or by other workspace folders."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.uris import Root

if TYPE_CHECKING:
    from lsp_server.server import Server

logger = logging.getLogger(__name__)

SECTION = "midfill"
PROJECT_FILE = "/.midfill.toml"  # how its URI ends
_SETTINGS_S = 1.0  # how long the start waits for the client's settings; later ones replace what was started


def register(server: Server) -> None:
    session = server.session
    handlers = server.protocol.notifications

    def did_change_configuration(params: types.DidChangeConfigurationParams) -> Any:
        if server.client.capabilities.configuration:
            return pull(server)
        session.client_settings = merged(server.initial_settings, section(params.settings))
        server.reload_settings()
        return None

    def did_change_watched_files(params: types.DidChangeWatchedFilesParams) -> None:
        if any(change.uri.endswith(PROJECT_FILE) for change in params.changes):
            server.reload_settings()

    def did_change_workspace_folders(params: types.DidChangeWorkspaceFoldersParams) -> None:
        gone = {folder.uri for folder in params.event.removed}
        added = [Root(folder.uri, folder.name) for folder in params.event.added]
        kept = [root for root in session.documents.roots if root.uri not in gone]
        session.documents.set_roots([*kept, *(root for root in added if root not in kept)])
        server.reload_settings()

    handlers[types.WORKSPACE_DID_CHANGE_CONFIGURATION] = did_change_configuration
    handlers[types.WORKSPACE_DID_CHANGE_WATCHED_FILES] = did_change_watched_files
    handlers[types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS] = did_change_workspace_folders


async def start(server: Server) -> None:
    """Set the engine up, with the client's settings if it gives them in time."""
    if server.client.capabilities.configuration:
        await asyncio.wait({asyncio.ensure_future(pull(server))}, timeout=_SETTINGS_S)
    if not server.session.started:
        server.session.reload()


async def pull(server: Server) -> None:
    """Ask for the client's settings and use them. A later question makes this one void."""
    server.pulls += 1
    number = server.pulls
    item = types.ConfigurationItem(section=SECTION)
    try:
        answer = await server.protocol.send_request_async(
            types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=[item])
        )
    except asyncio.CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - an error response, or a result of the wrong shape
        logger.warning("the client has no settings for us: %s", error)
        return
    if number == server.pulls:
        pulled = answer[0] if answer else None
        server.session.client_settings = merged(server.initial_settings, section(pulled))
        server.reload_settings()


def section(settings: Any) -> Mapping[str, Any]:
    """Our part of what a client sends: the section itself, or the tree around it."""
    if not isinstance(settings, Mapping):
        return {}
    inner = settings.get(SECTION)
    return inner if isinstance(inner, Mapping) else settings


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` wins, table by table; null means not set."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            result[key] = merged(old, value)
        elif value is not None:
            result[key] = value
    return result
