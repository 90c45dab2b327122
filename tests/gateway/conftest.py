from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from backends.base import SilentObserver
from backends.ffm import FfmBackend
from backends.settings import BackendSettings
from tests.gateway.gateway_process import ENV, MODEL, GatewayProcess, work
from tests.services.ffm import FfmService

MORE = '[gateway]\naliases = ["team-model"]\nmax_tokens = 400\n'


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FfmService, GatewayProcess]]:
    with (
        FfmService() as service,
        GatewayProcess(
            tmp_path_factory.mktemp("gateway"), work(service.url, MORE), "--key-env", "GATEWAY_KEY"
        ) as gateway,
    ):
        yield service, gateway


@pytest.fixture
def service(running: tuple[FfmService, GatewayProcess]) -> FfmService:
    running[0].reset()
    return running[0]


@pytest.fixture
def gateway(running: tuple[FfmService, GatewayProcess]) -> GatewayProcess:
    """A gateway that is not to be broken: its backend must not fail."""
    return running[1]


@pytest.fixture
def own_service() -> Iterator[FfmService]:
    with FfmService() as service:
        yield service


@pytest.fixture
async def backend(own_service: FfmService, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FfmBackend]:
    """Over `own_service`, with no guard around it."""
    monkeypatch.setenv("WORK_KEY", ENV["WORK_KEY"])
    settings = BackendSettings(kind="ffm", url=own_service.url, model=MODEL, key_env="WORK_KEY")
    backend = FfmBackend("work", settings, SilentObserver())
    yield backend
    await backend.aclose()


@pytest.fixture
def client(gateway: GatewayProcess) -> Iterator[httpx.Client]:
    """Sends the key."""
    headers = {"authorization": f"Bearer {ENV['GATEWAY_KEY']}"}
    with httpx.Client(base_url=gateway.url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path
