"""A backend in a distribution of its own, as docs/adding-a-backend.md says: built, installed, found, used, tested."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from backends._service import HttpBackend
from tests.backends.contract import KEY as CANARY
from tests.backends.contract import Bench, bench_for, cases, kind_of
from tests.lsp_server.commandline import ROOT, midfill
from tests.services.common import Answer
from tests.services.example import MODEL, ExampleService

SOURCE = ROOT / "tests" / "example_backend"
KEY = "test-key"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed distribution."""
    out, site = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("site")
    alone = ["--no-isolation", "--skip-dependency-check"] if importlib.util.find_spec("hatchling") else []
    command = [sys.executable, "-m", "build", "--wheel", *alone, "--outdir", str(out), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with zipfile.ZipFile(next(out.glob("*.whl"))) as wheel:
        wheel.extractall(site)
    return site


@pytest.fixture(scope="module")
def service() -> Iterator[ExampleService]:
    with ExampleService(key=KEY) as running:
        yield running


@pytest.fixture
def config(tmp_path: Path, service: ExampleService) -> str:
    file = tmp_path / "config.toml"
    lines = ["[backends.work]", 'kind = "example"', f'url = "{service.url}"', f'model = "{MODEL}"', 'key_env = "X_KEY"']
    file.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "sum.py").write_text("def add(a, b):\n    return \n\n\nprint(add(1, 2))\n", encoding="utf-8")
    return str(file)


def test_the_page_shows_it_as_it_is() -> None:
    page = (ROOT / "docs" / "adding-a-backend.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    source = (SOURCE / "midfill_example.py").read_text(encoding="utf-8")
    assert shown == [source[source.index("class ExampleBackend") :]]


def test_complete(tmp_path: Path, site: Path, config: str, service: ExampleService) -> None:
    service.reset(Answer(deltas=("a ", "+ b")))
    env = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "X_KEY": KEY}
    done = midfill("complete", "sum.py:2:12", "--config", config, cwd=tmp_path, env=env)
    assert (done.returncode, done.stdout.rstrip("\n")) == (0, "a + b"), done.stderr
    body = service.log[-1].body
    assert body["before"].endswith("def add(a, b):\n    return ")
    assert body["after"].startswith("\n\n\nprint(add(1, 2))")


def test_doctor(tmp_path: Path, site: Path, config: str, service: ExampleService) -> None:
    service.reset()
    env = {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "X_KEY": KEY}
    done = midfill("doctor", "--config", config, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ok    infill: {MODEL} infills" in done.stdout


def test_without_the_distribution(tmp_path: Path, config: str) -> None:
    done = midfill("complete", "sum.py:2:12", "--config", config, cwd=tmp_path, env={"X_KEY": KEY})
    assert done.returncode == 2
    assert "backends.work.kind is 'example'; allowed: ffm, " in done.stderr


@pytest.fixture
async def bench(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> AsyncIterator[Bench]:
    monkeypatch.syspath_prepend(SOURCE)
    kind = kind_of("example", "midfill_example:ExampleBackend")
    with kind.service(key=CANARY) as service:
        async with bench_for(kind, service, caplog, capfd, monkeypatch) as made:
            yield made


@pytest.mark.parametrize("name", cases())
async def test_contract(bench: Bench, name: str) -> None:
    await cases()[name].run(bench)


def test_the_guide_names_what_there_is() -> None:
    guide = (ROOT / "docs" / "adding-a-backend.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `(\w+)(?:\(.*?\))?` \|", guide, flags=re.MULTILINE))
    assert rows >= HttpBackend.__abstractmethods__
    assert all(callable(vars(HttpBackend)[name]) or name in HttpBackend.__abstractmethods__ for name in rows)
    (example,) = re.findall(r"^```toml\n(.*?)^```", guide, flags=re.DOTALL | re.MULTILINE)
    assert example in (SOURCE / "pyproject.toml").read_text(encoding="utf-8")
