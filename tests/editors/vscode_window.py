"""The browser that VS Code is shown in, and what runs JavaScript inside of VS Code. Knows nothing of midfill."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.editors.vscode_parts import browser

WAIT_S = float(os.environ.get("TEST_WAIT_S", "60"))  # for anything; never reached by a passing test
WIDTH, HEIGHT = 900, 420  # of the window, pixels
CHROMIUM = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)
SCREEN = (Path(__file__).parent / "vscode" / "screen.js").read_text(encoding="utf-8")

T = TypeVar("T")


class Browser:
    """Chromium with one page at a time. Its event loop has a thread of its own: tests run loops of theirs."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._context: Any = None
        self.page: Any = None
        self.do(self._start())

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(WAIT_S)

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self._chromium = await self._playwright.chromium.launch(executable_path=browser(), args=CHROMIUM)

    def open(self, address: str) -> None:
        """A new page, which remembers nothing of the one before."""
        self.do(self._open(address))

    async def _open(self, address: str) -> None:
        if self._context is not None:
            await self._context.close()
        self._context = await self._chromium.new_context(viewport={"width": WIDTH, "height": HEIGHT}, locale="en-US")
        self.page = await self._context.new_page()
        self.page.set_default_timeout(WAIT_S * 1000)
        await self.page.add_init_script(SCREEN)
        await self.page.goto(address, wait_until="commit")

    def screen(self) -> dict[str, Any]:
        found: dict[str, Any] = self.do(self.page.evaluate("midfillScreen()"))
        return found

    def press(self, key: str) -> None:
        self.do(self.page.keyboard.press(key))

    def type(self, text: str) -> None:
        self.do(self.page.keyboard.type(text))

    def click(self, selector: str) -> None:
        self.do(self.page.click(selector))

    def picture(self, path: Path, above: int = 0) -> None:
        """A PNG of the window without the pixels above."""
        clip = {"x": 0, "y": above, "width": WIDTH, "height": HEIGHT - above}
        self.do(self.page.screenshot(path=path, clip=clip))

    def close(self) -> None:
        self.do(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()

    async def _stop(self) -> None:
        await self._chromium.close()
        await self._playwright.stop()


class Driver:
    """The extension in tests/editors/vscode/driver, which runs JavaScript where extensions run."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(WAIT_S)
        self.port: int = self._listener.getsockname()[1]
        self._connection: socket.socket | None = None

    def accept(self) -> None:
        """Wait for the extension of a window that has been opened."""
        self.drop()
        self._connection, _ = self._listener.accept()
        self._connection.settimeout(WAIT_S)
        self._lines = self._connection.makefile("r", encoding="utf-8")

    def run(self, body: str, given: Any = None) -> Any:
        assert self._connection is not None
        self._connection.sendall(json.dumps({"body": body, "given": given}).encode() + b"\n")
        answer = json.loads(self._lines.readline())
        assert "error" not in answer, f"{answer['error']} from: {body}"
        return answer["result"]

    def drop(self) -> None:
        """End what runs extensions in the window before; it would wait for that window to come back."""
        if self._connection is not None:
            self._connection.sendall(json.dumps({"body": "process.kill(process.pid, 'SIGKILL')"}).encode() + b"\n")
            self._lines.close()
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        self.drop()
        self._listener.close()
