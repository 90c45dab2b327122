"""Qianfan backends of tests, the service they talk to, short ways to ask them. The conftest takes the fixtures over."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing
from typing import Any

import pytest

from backends.base import (
    BackendError,
    BackendRequest,
    ChatPrompt,
    Delta,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
)
from backends.qianfan import QianfanBackend
from backends.settings import BackendSettings
from tests.backends.contract import Notices
from tests.services.qianfan import ACCESS, APP_KEY, APP_SECRET, MODEL, SECRET, QianfanService

INFILL = BackendRequest(InfillPrompt("a = ", "\n"), max_tokens=32)
RAW = BackendRequest(RawPrompt((Piece("def add(a, b):\n"),)), max_tokens=16)
CHAT = BackendRequest(ChatPrompt((Message("system", "Be brief."), Message("user", "Fill."))), max_tokens=16)
IAM = {"access_key_env": "T_ACCESS", "secret_key_env": "T_SECRET"}
APP = {"key_env": "T_APP_KEY", "secret_key_env": "T_APP_SECRET", "api": "v1"}
SECRETS = {
    "T_ACCESS": ACCESS,
    "T_SECRET": SECRET,
    "T_APP_KEY": APP_KEY,
    "T_APP_SECRET": APP_SECRET,
    "T_KEY": "test-key",
}
CODER = {"api": "v1", "endpoint": "codellama_7b_instruct", "model": ""}
SERVICES_PATH = "/wenxinworkshop/service/list"
BEARER_PATH, OAUTH_PATH = "/v1/BCE-BEARER/token", "/oauth/2.0/token"


@pytest.fixture(scope="module")
def running_qianfan() -> Iterator[QianfanService]:
    with QianfanService() as service:
        yield service


@pytest.fixture
def qianfan(running_qianfan: QianfanService) -> QianfanService:
    """The loopback service as new."""
    running_qianfan.reset()
    running_qianfan.tokens.clear()
    running_qianfan.infills, running_qianfan.refuse_tokens, running_qianfan.lifetime_s = True, None, 43_200
    return running_qianfan


@pytest.fixture
async def make_qianfan(
    qianfan: QianfanService, monkeypatch: pytest.MonkeyPatch, notices: Notices, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Any]:
    """Build a backend from settings. At the end nothing secret may have been told anywhere."""
    caplog.set_level(logging.DEBUG)
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    async with AsyncExitStack() as stack:

        def build(**settings: Any) -> QianfanBackend:
            keys = {} if "secret_key_env" in settings else {"key_env": "T_KEY"}
            chosen = {"url": qianfan.url, "model": MODEL, **keys, **settings}
            backend = QianfanBackend("work", BackendSettings(kind="qianfan", **chosen), notices)
            stack.push_async_callback(backend.aclose)
            return backend

        yield build
    told = caplog.text + repr(notices.notices)
    assert not [secret for secret in (*SECRETS.values(), "24.token", "bce-v3/ALTAK-temp") if secret in told]


async def deltas_of(backend: QianfanBackend, request: BackendRequest = INFILL) -> list[Delta]:
    async with aclosing(backend.stream(request)) as deltas:
        return [delta async for delta in deltas]


async def text_of(backend: QianfanBackend, request: BackendRequest = INFILL) -> str:
    return "".join(delta.text for delta in await deltas_of(backend, request))


async def failure(backend: QianfanBackend, request: BackendRequest = INFILL) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await deltas_of(backend, request)
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.message
    assert not [secret for secret in SECRETS.values() if secret in shown]
    assert "access_token" not in caught.value.message
    return caught.value


def paths(service: QianfanService) -> list[str]:
    return [seen.path for seen in service.log]
