"""The command `midfill.pullModel`: brings a local model here while the editor shows how far it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.base import BackendError
from lsp_server.protocol import InvalidParamsError

if TYPE_CHECKING:
    from backends.base import Observer
    from backends.model_store import Reference
    from lsp_server.server import Server

PULL = "midfill.pullModel"


class _Stopped(Exception):  # noqa: N818 - not an error: nobody waits for the model any more
    pass


@dataclass(slots=True)
class _Pull:
    """One that is under way. `stop` ends it at its next piece; what has come is kept for the next time."""

    work: asyncio.Future[Path]
    stop: threading.Event
    waiting: int = 0


def pull_command(server: Server) -> Callable[[list[Any]], asyncio.Future[dict[str, str]]]:
    """Takes the model's name, or `owner/repository:file.gguf`; gives `path`, or `error`, a sentence."""
    running: dict[str, _Pull] = {}

    def begun(name: str, reference: Reference) -> _Pull:
        from backends.model_store import pull

        stop = threading.Event()
        work = _in_thread(lambda observer: pull(reference, observer), server.session.client, stop)
        one = running[name] = _Pull(work, stop)

        def done(work: asyncio.Future[Path]) -> None:
            work.exception()  # seen, whether or not somebody waits for it
            if running.get(name) is one:
                del running[name]

        work.add_done_callback(done)
        return one

    async def pulled(name: str) -> dict[str, str]:
        from backends._model_file import unknown
        from backends.model_store import reference_of

        reference = reference_of(name)
        if reference is None:
            raise InvalidParamsError(unknown(name))
        one = running.get(name) or begun(name, reference)  # whoever asks again waits for the same
        one.waiting += 1
        try:
            await asyncio.wait({one.work})  # not awaited itself: who is cancelled here does not end it for others
        finally:
            one.waiting -= 1
            if not one.waiting and not one.work.done():
                one.stop.set()
                running.pop(name, None)
        try:
            return {"path": str(one.work.result())}
        except BackendError as error:
            return {"error": error.message}

    def command(arguments: list[Any]) -> asyncio.Future[dict[str, str]]:
        if len(arguments) != 1 or not isinstance(arguments[0], str):
            raise InvalidParamsError("one string is wanted")
        return asyncio.ensure_future(pulled(arguments[0]))

    return command


class _FromThread:
    """An observer for another thread than the loop's. Once `stop` is set, whoever tells it of progress is ended."""

    def __init__(self, observer: Observer, loop: asyncio.AbstractEventLoop, stop: threading.Event) -> None:
        self._observer = observer
        self._loop = loop
        self._stop = stop

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        self._tell(lambda: self._observer.notice(key, message, warning=warning))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if self._stop.is_set() and not done:
            raise _Stopped
        self._tell(lambda: self._observer.progress(key, title, fraction, done=done))

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(what)


def _in_thread(work: Callable[[Observer], Path], observer: Observer, stop: threading.Event) -> asyncio.Future[Path]:
    """A thread that nothing waits for: what has come of a file is kept when the server ends in its middle."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Path] = loop.create_future()

    def settle(path: Path | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        elif path is not None:
            future.set_result(path)

    def run() -> None:
        path, failed = None, None
        try:
            path = work(_FromThread(observer, loop, stop))
        except Exception as error:  # noqa: BLE001 - the loop's thread raises it again
            failed = error
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, path, failed)

    threading.Thread(target=run, name="midfill-pull", daemon=True).start()
    return future
