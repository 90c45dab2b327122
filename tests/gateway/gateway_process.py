"""Runs `midfill gateway` as a user does, or the same application in the test's own loop."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import uvicorn

from backends.base import Backend, SilentObserver
from backends.keys import Key
from lsp_server.gateway.app import application
from lsp_server.gateway.desk import Desk
from lsp_server.gateway.endpoint import Services
from lsp_server.gateway.keys import KeyCheck
from lsp_server.gateway.serving import Protocol, listen
from lsp_server.settings import Settings
from tests.lsp_server.commandline import environment

MODEL = "qwen2.5-coder-7b-32k"
ENV = {"WORK_KEY": "test-key", "GATEWAY_KEY": "gateway-secret"}


def work(url: str, more: str = "") -> str:
    """Settings with one ffm backend; `more` follows its table."""
    table = f'[backends.work]\nkind = "ffm"\nurl = "{url}"\nmodel = "{MODEL}"\nkey_env = "WORK_KEY"\n'
    return f'backend = "work"\n{table}{more}'


class GatewayProcess:
    """Use as a context manager. The process ends by SIGINT, and must end well."""

    def __init__(self, folder: Path, config: str, *arguments: str, env: Mapping[str, str] = ENV) -> None:
        file = folder / "gateway.toml"
        file.write_text(config, encoding="utf-8")
        command = [sys.executable, "-m", "lsp_server", "gateway", "--port", "0", "--config", str(file), *arguments]
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment(folder, env), stderr=subprocess.PIPE, encoding="utf-8"
        )
        self.url = ""
        self._lines: list[str] = []
        self._serving = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._lines.append(line)
            if found := re.search(r"^midfill: serving .* at (http://\S+) ", line):
                self.url = found[1]
                self._serving.set()
        self._serving.set()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        """What was written to stderr so far."""
        return "".join(self._lines)

    def __enter__(self) -> Self:
        assert self._serving.wait(100)
        assert self.url, self.log
        return self

    def __exit__(self, *_: object) -> None:
        code = self.end(signal.SIGINT)
        assert code == 0, self.log
        assert "Traceback" not in self.log
        for secret in ENV.values():
            assert secret not in self.log

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def end(self, number: int) -> int:
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = self._process.wait(30)
        self._reader.join(30)
        assert self._process.stderr
        self._process.stderr.close()
        return code


@asynccontextmanager
async def in_process(
    backends: list[Backend],
    *,
    settings: Settings | None = None,
    key: Key | None = None,
    ping_s: float = 15.0,
) -> AsyncIterator[tuple[str, Desk]]:
    """The application in this loop; yields its URL and its desk. `backends` are not closed."""
    settings = settings or Settings()
    desk = Desk(backends, settings, SilentObserver())
    services = Services(desk, KeyCheck(key), settings.gateway.max_body_kb * 1024, ping_s)
    config = uvicorn.Config(
        application(services),
        http=Protocol,
        log_level="critical",
        lifespan="off",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listening:
        serving = asyncio.ensure_future(server._serve([listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}", desk
        finally:
            server.should_exit = server.force_exit = True
            await serving
