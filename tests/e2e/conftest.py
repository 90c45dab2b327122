"""A loopback FFM service, settings for it, and a server that an editor has started and initialized."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp_client import LspClient, client_names, client_params, stdio_server, tcp_server
from tests.services.ffm import Answer, FfmService

KEY = "canary-b1946ac92492d2347c6235b4d2611184"  # must never be seen but in the service's headers
KEY_ENV = "E2E_FFM_KEY"

Editor = Callable[..., LspClient]


def settings(url: str, *, debounce_ms: int = 0, more: str = "", model: str = "qwen2.5-coder-7b-32k") -> str:
    return f"""
backend = "work"
[backends.work]
kind = "ffm"
url = {json.dumps(url)}
model = {json.dumps(model)}
key_env = "{KEY_ENV}"
[completion]
debounce_ms = {debounce_ms}
max_candidates = 1
speculate = "never"
{more}
"""


@pytest.fixture
def ffm() -> Iterator[FfmService]:
    with FfmService(key=KEY) as service:
        yield service


@pytest.fixture
def config(tmp_path: Path, ffm: FfmService) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(settings(ffm.url), encoding="utf-8")
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "trace.jsonl"


@pytest.fixture(params=client_names())
def editor_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def editor(config: Path, trace: Path) -> Iterator[Editor]:
    """Starts servers as an editor does: `editor("vim-9.0", "--verbose", tcp=True)`. What is left running is killed."""
    with contextlib.ExitStack() as stack:

        def start(name: str = "vim-9.0", *arguments: str, tcp: bool = False, **changed: Any) -> LspClient:
            arguments = ("--config", str(config), "--trace", str(trace), *arguments)
            start_server = tcp_server if tcp else stdio_server
            client = stack.enter_context(start_server(*arguments, environ={KEY_ENV: KEY}))
            params = {**client_params(name), **changed}
            answer_as(client, params["capabilities"])
            client.initialize(params)
            return client

        yield start


def answer_as(client: LspClient, capabilities: dict[str, Any]) -> None:
    """Answer what the capabilities promise to answer, and nothing else."""
    everything = json.dumps(capabilities)
    if '"workDoneProgress": true' in everything:
        client.answers["window/workDoneProgress/create"] = lambda params: None
    if '"configuration": true' in everything:
        client.answers["workspace/configuration"] = lambda params: [None for _ in params["items"]]
    if '"dynamicRegistration": true' in everything:
        client.answers["client/registerCapability"] = lambda params: None


def until(service: FfmService, **least: int) -> dict[str, int]:
    return asyncio.run(service.until(**least))


def script(service: FfmService, *texts: str, **fields: Any) -> None:
    """Answer with these texts, one delta per character; the last one for ever."""
    service.reset(*(Answer(deltas=tuple(text), **fields) for text in texts))


def messages(client: LspClient) -> list[str]:
    """All message boxes so far, taken."""
    client.command("midfill.status")
    found = [m for m in client.everything if m.get("method") == "window/showMessage"]
    for message in found:
        client.take(lambda each, wanted=message: each is wanted)  # type: ignore[misc]
    client.everything = [m for m in client.everything if m not in found]
    return [message["params"]["message"] for message in found]
