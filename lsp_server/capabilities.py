"""What the client can do, and what the server therefore offers. Pure functions over the JSON of `initialize`.

Must not fail on anything a client may send: a capability of an unexpected type counts as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lsprotocol import types

from lsp_server.positions import Encoding

COMMANDS = (
    "midfill.accept",
    "midfill.reject",
    "midfill.toggle",
    "midfill.clearCache",
    "midfill.status",
    "midfill.explain",
    "midfill.pullModel",
)


@dataclass(frozen=True, slots=True)
class ClientCapabilities:
    """The few capabilities that matter here."""

    encoding: Encoding = Encoding.UTF16
    inline_completion: bool = False
    inline_completion_dynamic: bool = False
    configuration: bool = False  # answers workspace/configuration
    configuration_dynamic: bool = False
    watched_files_dynamic: bool = False
    work_done_progress: bool = False

    @classmethod
    def of(cls, raw: Any) -> ClientCapabilities:
        def at(*keys: str) -> Any:
            value = raw
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            return value

        return cls(
            encoding=_encoding(at("general", "positionEncodings")),
            inline_completion=isinstance(at("textDocument", "inlineCompletion"), Mapping),
            inline_completion_dynamic=at("textDocument", "inlineCompletion", "dynamicRegistration") is True,
            configuration=at("workspace", "configuration") is True,
            configuration_dynamic=at("workspace", "didChangeConfiguration", "dynamicRegistration") is True,
            watched_files_dynamic=at("workspace", "didChangeWatchedFiles", "dynamicRegistration") is True,
            work_done_progress=at("window", "workDoneProgress") is True,
        )


def _encoding(offered: Any) -> Encoding:
    """UTF-16 whenever the client knows it, since other servers of the same buffer use it; else the client's first."""
    known = (
        [encoding for name in offered for encoding in Encoding if encoding == name] if isinstance(offered, list) else []
    )
    return known[0] if known and Encoding.UTF16 not in known else Encoding.UTF16


def offered(client: ClientCapabilities) -> dict[str, Any]:
    """The server's capabilities, as JSON.

    Inline completion is offered statically unless the client registers it dynamically. Clients that announce nothing
    get plain completion besides: some of them ask for inline completion all the same (Neovim 0.11), others never will.
    """
    result: dict[str, Any] = {
        "positionEncoding": client.encoding.value,
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},  # 2: incremental
        "notebookDocumentSync": {  # all of all notebooks
            "notebookSelector": [{"notebook": "*", "cells": [{"language": "*"}]}],
            "save": True,
        },
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    if not client.inline_completion_dynamic:
        result["inlineCompletionProvider"] = {}
    if not client.inline_completion:
        result["completionProvider"] = {}
    return result


def registrations(client: ClientCapabilities) -> list[types.Registration]:
    """What is registered dynamically once the client is ready."""
    result = []
    if client.inline_completion_dynamic:
        method = types.TEXT_DOCUMENT_INLINE_COMPLETION
        result.append(types.Registration("midfill.inlineCompletion", method, {"documentSelector": None}))
    if client.configuration_dynamic:
        method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
        result.append(types.Registration("midfill.configuration", method, {"section": "midfill"}))
    if client.watched_files_dynamic:
        watchers = {"watchers": [{"globPattern": "**/.midfill.toml"}]}
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        result.append(types.Registration("midfill.projectFile", method, watchers))
    return result
