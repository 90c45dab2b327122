"""What holds for all tests: none meets a local worker of another test or of the user, nor the user's settings."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

_numbers = count()


@pytest.fixture(scope="session")
def runtime_folders() -> Iterator[Path]:
    # Short: the name of a socket may have a hundred bytes.
    folder = Path(tempfile.mkdtemp(prefix="midfill-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def runtime_folder(runtime_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where workers are met in this test, by whatever processes it starts."""
    folder = runtime_folders / str(next(_numbers))
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(folder / "gitconfig"))
    return folder / "midfill"
