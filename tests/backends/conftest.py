"""Backends under test, and the services they talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from backends.base import BackendRequest, Delta, InfillPrompt
from backends.ffm import FfmBackend
from backends.settings import BackendSettings
from tests.backends import contract
from tests.backends.contract import Bench, Kind, Notices, bench_for, kind_of
from tests.backends.qianfan_desk import make_qianfan, qianfan, running_qianfan  # noqa: F401 - fixtures
from tests.services.common import LoopbackService
from tests.services.ffm import FfmService

MODEL = "qwen2.5-coder-7b-32k"
KEY = "test-key"


MakeFfm = Callable[..., FfmBackend]


@pytest.fixture(scope="module")
def running_ffm() -> Iterator[FfmService]:
    with FfmService(key=KEY) as service:
        yield service


@pytest.fixture
def ffm(running_ffm: FfmService) -> FfmService:
    """The loopback service with an empty log and the default answer."""
    running_ffm.reset()
    return running_ffm


@pytest.fixture(scope="module")
def kind(request: pytest.FixtureRequest) -> Iterator[tuple[Kind, LoopbackService]]:
    """A kind of the contract, and its running service."""
    found = kind_of(request.param)
    with found.service(key=contract.KEY) as service:
        yield found, service


@pytest.fixture
async def bench(
    kind: tuple[Kind, LoopbackService],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> AsyncIterator[Bench]:
    async with bench_for(*kind, caplog, capfd, monkeypatch) as made:
        yield made


@pytest.fixture
def notices() -> Notices:
    return Notices()


@pytest.fixture
async def make_ffm(monkeypatch: pytest.MonkeyPatch, notices: Notices) -> AsyncIterator[MakeFfm]:
    """Build an FFM backend from a URL and settings; it is closed at the end."""
    monkeypatch.setenv("MIDFILL_TEST_KEY", KEY)
    built: list[FfmBackend] = []

    def make(url: str, **settings: Any) -> FfmBackend:
        defaults: dict[str, Any] = {"kind": "ffm", "model": MODEL, "key_env": "MIDFILL_TEST_KEY"}
        backend = FfmBackend("work", BackendSettings(url=url, **(defaults | settings)), notices)
        built.append(backend)
        return backend

    yield make
    for backend in built:
        await backend.aclose()


@pytest.fixture
def question() -> BackendRequest:
    return BackendRequest(InfillPrompt("def add(a, b):\n    ", "\n\nprint(add(1, 2))\n"), max_tokens=32)


@pytest.fixture
def collect() -> Callable[..., Any]:
    """Run a request to its end; return its deltas."""

    async def run(backend: Any, request: BackendRequest) -> list[Delta]:
        async with aclosing(backend.stream(request)) as deltas:
            return [delta async for delta in deltas]

    return run
