"""What the tests of an editor's life share: settings of the embedded model, messages, refusals, running servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import psutil

LOCAL = """
backend = "local"
[backends.local]
kind = "llama-cpp"
timeout_s = 100  # the machine may be busy
"""
NOT_INSTALLED = 'midfill: the server is not installed; in a clone of midfill run: pipx install ".[local]"'


class Editor(Protocol):
    def status(self) -> dict[str, Any]: ...


class Talkative(Protocol):
    def messages(self) -> list[str]: ...


def children(pid: int) -> list[psutil.Process]:
    """The running ones: servers."""
    found = psutil.Process(pid).children()
    return [child for child in found if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


def told(editor: Talkative, begin: str = "midfill: ") -> list[str]:
    return [message for message in editor.messages() if message.startswith(begin)]


def refusals(editor: Editor) -> int:
    """How often the backend has refused, or was not asked as it had."""
    counts = editor.status()["counts"]
    return int(counts["backend-error"]) + int(counts["breaker-open"])


def refused_more(editor: Editor) -> Callable[[], bool]:
    """Whether it has refused again since now."""
    before = refusals(editor)
    return lambda: refusals(editor) > before
