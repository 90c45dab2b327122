"""What the user hears through the editor: messages, each once, and progress. The server's `Observer`.

Must not know why anything is said. Used from the event loop only; never raises.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from backends.plain import plain
from lsp_server.capabilities import ClientCapabilities

if TYPE_CHECKING:
    from lsp_server.protocol import Protocol

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Progress:
    token: str
    percentage: int | None = None
    began: bool = False
    dropped: bool = False  # done, or refused, before the client had made the token


class Client:
    """Implements `backends.base.Observer`."""

    def __init__(self, protocol: Protocol) -> None:
        self.capabilities = ClientCapabilities()
        self._protocol = protocol
        self._noticed: set[str] = set()
        self._progress: dict[str, _Progress] = {}
        self._tokens = 0

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        """Tell `message`, unless one with this `key` was told before. Only a warning opens a message box."""
        if key in self._noticed:
            return
        self._noticed.add(key)
        message = plain(message)  # names in a project's files, words of a service
        if not warning:
            self.log(message)
            return
        logger.warning("%s", message)
        shown = types.ShowMessageParams(type=types.MessageType.Warning, message=f"midfill: {message}")
        self._protocol.notify(types.WINDOW_SHOW_MESSAGE, shown)

    def forget_notices(self) -> None:
        """Show everything anew: the causes may be others now."""
        self._noticed.clear()

    def log(self, message: str) -> None:
        """A detail for the editor's log."""
        message = plain(message)
        logger.info("%s", message)
        self._protocol.notify(types.WINDOW_LOG_MESSAGE, types.LogMessageParams(types.MessageType.Info, message))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        percentage = None if fraction is None else int(100 * min(max(fraction, 0.0), 1.0))
        known = self._progress.get(key)
        if known is None:
            if not done:
                self._begin(key, title, percentage)
        elif done:
            del self._progress[key]
            known.dropped = True
            if known.began:
                self._report(known, types.WorkDoneProgressEnd())
        elif percentage != known.percentage:
            known.percentage = percentage
            if known.began:
                self._report(known, types.WorkDoneProgressReport(percentage=percentage))

    def _begin(self, key: str, title: str, percentage: int | None) -> None:
        self._tokens += 1  # a token is used once
        progress = self._progress[key] = _Progress(f"midfill/{self._tokens}", percentage)
        self.log(title)
        if not self.capabilities.work_done_progress:
            return

        def created(answer: Future[Any]) -> None:
            if answer.cancelled() or answer.exception() is not None or progress.dropped:
                return
            progress.began = True
            begin = types.WorkDoneProgressBegin(title=f"midfill: {title}", percentage=progress.percentage)
            self._report(progress, begin)

        create = types.WorkDoneProgressCreateParams(token=progress.token)
        self._protocol.send_request(types.WINDOW_WORK_DONE_PROGRESS_CREATE, create).add_done_callback(created)

    def _report(self, progress: _Progress, value: Any) -> None:
        self._protocol.notify(types.PROGRESS, types.ProgressParams(token=progress.token, value=value))
