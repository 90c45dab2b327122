"""What the READMEs of the editors' folders say to type: all is known here, and run here or by the editors' tests."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp_client import ROOT

READMES = sorted((ROOT / "editors").glob("*/README.md"))
FAST = (
    "export CMAKE_BUILD_PARALLEL_LEVEL=$(getconf _NPROCESSORS_ONLN)",
    "export CMAKE_ARGS=-DCMAKE_PROJECT_INCLUDE=$PWD/backends/only_llama.cmake",
)
LINK = "mkdir -p ~/.vim/pack/midfill/opt && ln -s ~/src/midfill/editors/vim ~/.vim/pack/midfill/opt/midfill"
KNOWN = {
    *FAST,
    LINK,
    # The first half of the README's run command, which tests/test_docs.py runs in a clean clone.
    'python3 -m venv .venv && .venv/bin/python -m pip install ".[local]"',
    # tests/editors/vscode_parts.py and test_vscode_source.py build and install the extension.
    "cd editors/vscode",
    "npm ci",
    "npm run package",
    # Not run: the same package, put there by other programs.
    'uv tool install ".[local]"',
    "code --install-extension dist/midfill.vsix",
}

needs_bash = pytest.mark.skipif(
    sys.platform == "win32" or shutil.which("bash") is None, reason="SKIPPED: there is no bash"
)


def run(command: str, home: Path) -> str:
    done = subprocess.run(
        ["bash", "-euc", command],
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_command_is_known_here() -> None:
    found = {
        path: re.findall(r"^ *```sh\n(.*?)^ *```", path.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for path in READMES
    }
    assert len(found) == 4
    commands = {line.strip() for blocks in found.values() for block in blocks for line in block.strip().split("\n")}
    assert commands == KNOWN


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
def test_links_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text("utf-8"))
    assert "../../docs/configuration.md" in targets
    assert [target for target in targets if not (path.parent / target).exists()] == []


@needs_bash
def test_how_llama_is_to_be_compiled(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert all(line in readme for line in FAST)
    shown = run("; ".join(FAST) + '; echo "$CMAKE_BUILD_PARALLEL_LEVEL ${CMAKE_ARGS#*=}"', tmp_path)
    cores, file = shown.strip().split(" ", 1)
    assert int(cores) > 0
    assert Path(file).read_text("utf-8").count("OFF") == 2


@needs_bash
def test_vim_finds_the_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "midfill").symlink_to(ROOT)
    run(LINK, tmp_path)
    assert (tmp_path / ".vim" / "pack" / "midfill" / "opt" / "midfill" / "plugin" / "midfill.vim").is_file()
