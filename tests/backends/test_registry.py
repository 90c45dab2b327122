"""The registry: kinds by name, imported late, outside kinds by entry point."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backends import registry
from backends.base import BackendError, ErrorKind, SilentObserver
from backends.ffm import FfmBackend
from backends.settings import BackendSettings

ROOT = Path(__file__).parent.parent.parent


def test_a_kind_is_built_from_its_settings() -> None:
    settings = BackendSettings(kind="ffm", url="http://localhost/api", model="m")
    backend = registry.create("work", settings, SilentObserver())
    assert isinstance(backend, FfmBackend)
    assert (backend.name, backend.model) == ("work", "m")


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(BackendError, match=r"^backends\.work\.kind is 'ffn'; allowed: ffm, .*\bllama-cpp") as caught:
        registry.create("work", BackendSettings(kind="ffn"), SilentObserver())
    assert caught.value.kind is ErrorKind.SETTINGS


OUTSIDE = "class Outside:\n    def __init__(self, name, settings, observer):\n        self.name = name\n"


def installed(folder: Path, target: str, monkeypatch: pytest.MonkeyPatch, source: str = OUTSIDE) -> None:
    """A distribution that adds a backend kind, as pip leaves it."""
    info = folder / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[midfill.backends]\noutside = {target}\n")
    monkeypatch.delitem(sys.modules, "outside_backend", raising=False)
    (folder / "outside_backend.py").write_text(source)
    monkeypatch.syspath_prepend(folder)


def test_an_outside_kind_comes_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, "outside_backend:Outside", monkeypatch)
    backend = registry.create("work", BackendSettings(kind="outside"), SilentObserver())
    assert type(backend).__name__ == "Outside"
    with pytest.raises(BackendError, match=f"allowed: {', '.join(registry.KINDS)}, outside"):
        registry.create("work", BackendSettings(kind="else"), SilentObserver())


@pytest.mark.parametrize("target", ["no_such_module_here:Outside", "outside_backend:Missing"])
def test_an_outside_kind_that_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    installed(tmp_path, target, monkeypatch)
    with pytest.raises(BackendError, match=f"'outside' \\({target}\\) cannot be loaded") as caught:
        registry.create("work", BackendSettings(kind="outside"), SilentObserver())
    assert caught.value.kind is ErrorKind.SETTINGS


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("class Outside:\n    pass\n", "TypeError: Outside"),
        ("class Outside(Missing):\n    pass\n", "NameError: name 'Missing'"),
        ("class Outside:\n", "IndentationError: "),
    ],
)
def test_an_outside_kind_with_a_bug_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, why: str
) -> None:
    installed(tmp_path, "outside_backend:Outside", monkeypatch, source)
    with pytest.raises(BackendError, match=f"'outside' .* cannot be loaded: {why}") as caught:
        registry.create("work", BackendSettings(kind="outside"), SilentObserver())
    assert caught.value.kind is ErrorKind.SETTINGS


def test_what_an_outside_kind_says_of_its_settings_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from backends.base import *\ndef Outside(*given):\n    raise BackendError(ErrorKind.AUTH, 'No url.')\n"
    installed(tmp_path, "outside_backend:Outside", monkeypatch, source)
    with pytest.raises(BackendError, match=r"^No url\.$"):
        registry.create("work", BackendSettings(kind="outside"), SilentObserver())


def test_no_kind_is_imported_before_it_is_used() -> None:
    code = "import sys, backends.registry; print(sorted({'httpx', 'backends.ffm', 'llama_cpp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
