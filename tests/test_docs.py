"""Every command in the README and in docs/ is run here, and what the docs list is what there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from backends import registry
from completion.types import Reason
from tests.docs_hub import HUB_COMMANDS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SCRIPTS = sysconfig.get_path("scripts")


def commands_of(path: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.strip().split("\n")]


def marked(marker: str) -> str:
    match = re.search(rf"<!-- {marker} -->\n```sh\n(.+)\n```", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert match, f"the README marks its {marker}"
    return match[1]


def environment(tmp_path: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIDFILL_", "PYTHONPATH", "VIRTUAL_ENV"))}
    return {**kept, "PATH": SCRIPTS + os.pathsep + kept["PATH"], "XDG_CONFIG_HOME": str(tmp_path / "config")}


def run(command: str, cwd: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    shell = shutil.which("bash") or "sh"
    return subprocess.run(
        [shell, "-c", command],
        cwd=cwd,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_each_command_is_known_here() -> None:
    """A command added to the docs must be added to a test below."""
    known = {marked("run command"), marked("test command"), *SHORT_COMMANDS, *HUB_COMMANDS}
    others = [path for path in DOCUMENTS if path.name != "headless.md"]  # test_docs_headless.py runs all of that page
    assert {command for path in others for command in commands_of(path)} == known


SHORT_COMMANDS = {
    "midfill doctor": "smollm2-135m",
    "midfill complete examples/inventory.py:24:26 --explain": ".price * item.quantity",
}


@pytest.mark.model
@pytest.mark.parametrize(("command", "expected"), SHORT_COMMANDS.items())
def test_short_commands(command: str, expected: str, tmp_path: Path) -> None:
    done = run(command, ROOT, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert expected in done.stdout


@pytest.mark.model
@pytest.mark.timeout(2400)  # compiles llama.cpp where pip has not kept it
def test_run_command_in_a_clean_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    cloned = subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], capture_output=True, text=True, check=False)
    if cloned.returncode != 0:
        pytest.skip(f"not a git checkout, so it cannot be cloned: {cloned.stderr.strip()}")
    done = run(marked("run command"), clone, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip("\n").split("\n")[-1] == ".price * item.quantity"


def test_the_gate_runs_the_test_command(tmp_path: Path) -> None:
    """Runs the gate's own line that picks the command, not the command."""
    pick = next(line for line in (ROOT / ".ci" / "run").read_text().split("\n") if line.startswith("command="))
    done = run(pick + '; printf %s "$command"', ROOT, tmp_path)
    assert done.stdout == marked("test command")
    assert sys.version_info >= (3, 11)


def test_readme_lists_every_backend() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## Backends")[1]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE)) == set(registry.KINDS)


def test_troubleshooting_lists_every_reason() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    table = text.partition("## Why there was no suggestion")[2]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, flags=re.MULTILINE)) == {str(reason) for reason in Reason}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8"))
    assert [t for t in targets if not (path.parent / t).exists()] == []
