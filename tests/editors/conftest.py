"""The real editors, the real server and a loopback FFM service. What cannot be had is skipped, with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV
from tests.services.ffm import FfmService


def settings(url: str) -> str:
    """For a server that asks the service whenever the editor asks it."""
    return f"""
backend = "work"
[backends.work]
kind = "ffm"
url = {json.dumps(url)}
model = "qwen2.5-coder-7b-32k"
key_env = "{KEY_ENV}"
[completion]
debounce_ms = 0
adaptive_debounce = false
learning = false
speculate = "never"
"""


@pytest.fixture(scope="module")
def service() -> Iterator[FfmService]:
    """One service for all tests of a module, which `reset` it."""
    with FfmService(key=KEY) as service:
        yield service


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("editor")


@pytest.fixture(scope="module")
def server_arguments(folder: Path, service: FfmService) -> list[str]:
    config = folder / "config.toml"
    config.write_text(settings(service.url), encoding="utf-8")
    return ["--config", str(config)]
