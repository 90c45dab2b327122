"""An editor for benches: a server process of its own, spoken to in LSP over stdio. Knows neither typist nor figures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent  # where our packages are
WAIT_S = 180.0  # for any answer; a local model may have to be loaded first
_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {"inlineCompletion": {}, "synchronization": {}},
}


class EditorError(Exception):
    """The server did not do as it must. The message is for the user."""


def child_environment(**more: str) -> dict[str, str]:
    """Our packages come first, no setting of the user's gets in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MIDFILL_")}
    paths = [str(ROOT), *filter(None, [kept.get("PYTHONPATH")])]
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1", **more}


class Editor:
    """Use as an asynchronous context manager. `command` is what follows the interpreter.

    `answered` gets the list of items of each request, or None where it was cancelled, as soon as it comes.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.answered: Callable[[int, list[dict[str, Any]] | None], None] = lambda request, items: None
        self.messages: list[str] = []  # what the user is shown
        self._command = command
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked: set[int] = set()
        self._last = 0
        self._versions: dict[str, int] = {}
        self._ended = ""

    async def __aenter__(self) -> Editor:
        pipe = subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, *self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=self._environment
        )
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        assert self._reading is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def start(self, settings: Mapping[str, Any]) -> None:
        """Raises EditorError."""
        params = {"processId": os.getpid(), "rootUri": None, "capabilities": _CAPABILITIES}
        await self.call("initialize", {**params, "initializationOptions": {"midfill": settings}})
        self.notify("initialized", {})

    async def stop(self) -> None:
        """Raises EditorError."""
        await self.call("shutdown")
        self.notify("exit")
        assert self._process is not None
        try:
            await asyncio.wait_for(self._process.wait(), WAIT_S)
        except TimeoutError:
            raise EditorError("the server did not end") from None

    def open(self, uri: str, text: str) -> None:
        self._versions[uri] = 1
        document = {"uri": uri, "languageId": "python", "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def close(self, uri: str) -> None:
        del self._versions[uri]
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def change(self, uri: str, before: str, start: int, end: int, text: str) -> None:
        """Put `text` in place of [start, end) of the document, which is `before`."""
        self._versions[uri] += 1
        change = {"range": {"start": position(before, start), "end": position(before, end)}, "text": text}
        document = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def ask(self, uri: str, text: str, cursor: int, *, invoked: bool = False) -> int:
        """Ask for a suggestion; `answered` gets it."""
        where = {"textDocument": {"uri": uri}, "position": position(text, cursor)}
        request = self._request(
            "textDocument/inlineCompletion", {**where, "context": {"triggerKind": 1 if invoked else 2}}
        )
        self._asked.add(request)
        return request

    def cancel(self, request: int) -> None:
        if request in self._asked:
            self.notify("$/cancelRequest", {"id": request})

    def run(self, command: str, *arguments: Any) -> Awaitable[Any]:
        """A command; nobody need wait for it."""
        return self._expect(
            self._request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})
        )

    async def call(self, method: str, params: Any = None) -> Any:
        """Raises EditorError."""
        try:
            return await asyncio.wait_for(self._expect(self._request(method, params)), WAIT_S)
        except TimeoutError:
            raise EditorError(f"{method} was not answered") from None

    def notify(self, method: str, params: Any = None) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _request(self, method: str, params: Any) -> int:
        self._last += 1
        self._send({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    def _expect(self, request: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._ended:
            future.set_exception(EditorError(self._ended))
        self._waiting[request] = future
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody need look
        return future

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        body = json.dumps(message).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        stream = self._process.stdout
        try:
            while True:
                head = await stream.readuntil(b"\r\n\r\n")
                size = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
                self._arrived(json.loads(await stream.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._ended = "the server has ended"
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(EditorError(self._ended))

    def _arrived(self, message: Mapping[str, Any]) -> None:
        request, method = message.get("id"), message.get("method")
        if method is not None:
            if request is not None:  # of the server
                self._send({"jsonrpc": "2.0", "id": request, "result": None})
            elif method == "window/showMessage":
                self.messages.append(message["params"]["message"])
            return
        assert isinstance(request, int)
        error = message.get("error")
        if request in self._asked:
            self._asked.discard(request)
            self.answered(request, None if error else message["result"]["items"])
        elif (future := self._waiting.pop(request, None)) is not None and not future.done():
            if error:
                future.set_exception(EditorError(error["message"]))
            else:
                future.set_result(message["result"])


def now() -> float:
    """ms."""
    return time.perf_counter() * 1000


def position(text: str, offset: int) -> dict[str, int]:
    """As LSP has it, in UTF-16 units."""
    line = text.count("\n", 0, offset)
    begin = text.rfind("\n", 0, offset) + 1
    return {"line": line, "character": units(text[begin:offset])}


def units(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def offset_of(text: str, place: Mapping[str, int]) -> int:
    """The reverse of `position`."""
    begin = 0
    for _ in range(place["line"]):
        begin = text.index("\n", begin) + 1
    line = text[begin:].partition("\n")[0].encode("utf-16-le")
    return begin + len(line[: 2 * place["character"]].decode("utf-16-le"))
