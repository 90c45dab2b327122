"""Results that cannot be written: one line that says so, and no trace of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lsp_server.commandline import environment

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the device that is always full")

FULL = "midfill: the result cannot be written: No space left on device\n"
CLOSED = "midfill: the result cannot be written: Bad file descriptor\n"
COMMANDS = ["complete a.py:1:5 --json", "doctor --json", "doctor", "models path", "--help", "serve --help", "--version"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("x = \n")
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    config = tmp_path / "config" / "midfill"
    config.mkdir(parents=True)
    gguf = tmp_path / "m.gguf"
    (config / "config.toml").write_text(
        f'[languages.python]\nenabled = false\n[backends.m]\nkind = "llama-cpp"\nmodel_path = "{gguf}"\n'
    )
    return tmp_path


def run(folder: Path, command: str, ends: str, *, unbuffered: bool = False) -> tuple[int, str, str]:
    shell = f'exec "$0" -m lsp_server {command} {ends}'
    env = environment(folder, {"PYTHONUNBUFFERED": "1"} if unbuffered else {})
    done = subprocess.run(
        ["/bin/sh", "-c", shell, sys.executable],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(folder: Path, command: str, unbuffered: bool) -> None:
    code, _, err = run(folder, command, ">/dev/full", unbuffered=unbuffered)
    assert (code, err[-len(FULL) :]) == (2, FULL)
    assert "Traceback" not in err
    assert run(folder, command, ">/dev/full 2>/dev/full", unbuffered=unbuffered) == (2, "", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_stdout(folder: Path, command: str) -> None:
    assert run(folder, command, ">&-") == (2, "", CLOSED)
    assert run(folder, command, ">&- 2>&-") == (2, "", "")


@pytest.mark.parametrize("ends", ["2>&-", "2>/dev/full"])
@pytest.mark.parametrize("command", [*COMMANDS, "nonsense"])
def test_nobody_hears_complaints(folder: Path, command: str, ends: str) -> None:
    code, out, _ = run(folder, command, ends)
    usual = run(folder, command, "")
    assert (code, len(out) > 0) == (usual[0], len(usual[1]) > 0)
    assert "Traceback" not in out


@pytest.mark.parametrize("ends", [">/dev/full", ">&-", "2>&-", "2>/dev/full", ">&- 2>&-", "<&-"])
def test_the_server_ends_without_a_trace(folder: Path, ends: str) -> None:
    code, out, err = run(folder, "serve", ends)
    assert code in (1, 2)
    assert out == ""
    assert "Traceback" not in err
