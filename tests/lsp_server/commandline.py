"""Runs `midfill` as a user does, with none of the user's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

Done = subprocess.CompletedProcess[str]
Midfill = Callable[..., Done]


# `midfill`, to be followed by its arguments, that ends at SIGINT also where the tests run in a shell's background:
# such a shell has it ignored, and so have all its children.
INTERRUPTIBLE = (
    sys.executable,
    "-c",
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " runpy.run_module('lsp_server', run_name='__main__', alter_sys=True)",
)


def environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIDFILL_", "PYTHON"))}
    return {
        **kept,
        "XDG_CONFIG_HOME": str(home / "config"),
        "HOME": str(home),
        "USERPROFILE": str(home),
        "LOCALAPPDATA": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "1",
        **(more or {}),
    }


def midfill(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    return subprocess.run(
        [sys.executable, "-m", "lsp_server", *arguments],
        cwd=cwd,
        env=environment(cwd, env),
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
