"""Every block of docs/headless.md is run here, from the page, without a model."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.ffm import Answer, FfmService

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "headless.md").read_text(encoding="utf-8")
BLOCKS: list[tuple[str, str]] = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
TEXT = ".price * item.quantity"
CONFIG = """
[backends.work]
kind = "ffm"
url = "{url}"
model = "qwen2.5-coder-7b-32k"
key_env = "WORK_KEY"
"""


def block(kind: str, number: int) -> str:
    return [text for each, text in BLOCKS if each == kind][number]


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(script=[Answer(deltas=(".price", " * item", ".quantity"))]) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, service: FfmService) -> Path:
    """A folder with the example of the page, and settings that name the service."""
    (tmp_path / ".git").mkdir()
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for folder in ("midfill", "Library/Application Support/midfill"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "config.toml").write_text(CONFIG.format(url=service.url), encoding="utf-8")
    return tmp_path


def run(command: str, project: Path) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIDFILL_", "PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    homes = dict.fromkeys(("XDG_CONFIG_HOME", "HOME", "LOCALAPPDATA"), str(project))
    env = {**kept, **homes, "PATH": sysconfig.get_path("scripts") + os.pathsep + kept["PATH"], "WORK_KEY": "test-key"}
    env["PYTEST_ADDOPTS"] = "-p no:cacheprovider -o asyncio_default_fixture_loop_scope=function -W error"
    shell = shutil.which("bash") or "sh"
    return subprocess.run(
        [shell, "-c", command],
        cwd=project,
        env=env,
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_each_block_is_run_below() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sh", "sh", "python", "sh", "python", "sh", "python", "sh"]
    assert re.findall(r"`(\w+\.py)`", PAGE) == ["places.py", "ask.py", "test_midfill.py"]
    assert block("python", 0).count("\n") == 10
    assert block("sh", 0).count("\n") == 3


@pytest.mark.parametrize(("line", "stderr"), [(0, ""), (1, TEXT + "\n"), (2, "")], ids=["plain", "stream", "json"])
def test_one_place(line: int, stderr: str, project: Path) -> None:
    done = run(block("sh", 0).split("\n")[line], project)
    assert (done.returncode, done.stdout, done.stderr) == (0, TEXT + "\n", stderr)


def test_the_loop_passes_over_silence_and_ends_at_a_failure(project: Path, service: FfmService) -> None:
    places = [f"examples/inventory.py:{place}" for place in ("24:26", "25:21", "24:26", "25:21", "24:26")]
    (project / "places.txt").write_text("".join(f"{place}\n" for place in places), encoding="utf-8")
    service.reset(Answer(deltas=(TEXT,)), Answer(deltas=("  ",)), Answer(deltas=(TEXT,)), Answer(status=401))
    done = run(block("sh", 1), project)
    assert done.stdout == f"{places[0]}\t{TEXT}\n{places[2]}\t{TEXT}\n"
    assert "midfill: no suggestion: empty" in done.stderr
    assert "midfill: no suggestion: backend-error" in done.stderr
    assert len(service.log) == 4, "the fifth place is not tried"


def test_ten_lines_of_python(project: Path, service: FfmService) -> None:
    (project / "places.py").write_text(block("python", 0), encoding="utf-8")
    service.reset(Answer(deltas=(TEXT,)), Answer(deltas=("  ",)))
    done = run(block("sh", 2), project)
    assert (done.returncode, done.stderr) == (0, "midfill: no suggestion: empty\n")
    assert done.stdout == f"examples/inventory.py:24:26\t{TEXT}\nexamples/inventory.py:25:21\tempty\n"
    service.reset(Answer(status=401))
    done = run(block("sh", 2), project)
    assert (done.returncode, done.stdout) == (3, "")
    assert "midfill: no suggestion: backend-error" in done.stderr


def test_the_script_asks_at_each_place(project: Path, service: FfmService) -> None:
    (project / "ask.py").write_text(block("python", 1), encoding="utf-8")
    done = run(block("sh", 3), project)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"examples/inventory.py:24:26\t{TEXT}\nexamples/inventory.py:25:21\t{TEXT}\n"
    assert any("total += item<FILL_ME>\\n" in seen.text for seen in service.log)


def test_pytest_lsp(project: Path) -> None:
    (project / "test_midfill.py").write_text(block("python", 2), encoding="utf-8")
    done = run(block("sh", 4), project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
