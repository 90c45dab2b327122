"""What a VS Code to test with consists of, where it is found, and the extension's package."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.lsp_client import ROOT

EXTENSION = ROOT / "editors" / "vscode"
BUILD_S = 300.0  # the longest that building may take
_VERSIONS = Path(__file__).parent / "vscode" / "package.json"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BUILTIN = ("cpp", "ipynb", "json", "notebook-renderers", "python", "theme-defaults", "theme-seti")
_INSTALL = "run .ci/editors"


def browser() -> str | None:
    """TEST_CHROMIUM, or a Chromium on the path."""
    return os.environ.get("TEST_CHROMIUM") or next(filter(None, map(shutil.which, _BROWSERS)), None)


def _folder() -> Path:
    """Where .ci/editors puts code-server."""
    version = json.loads(_VERSIONS.read_text(encoding="utf-8"))["dependencies"]["code-server"]
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    chosen = os.environ.get("TEST_EDITORS") or Path(cache) / "midfill-test-editors"
    return Path(chosen) / f"code-server-{version}"


def _node_folder() -> Path | None:
    """Where the Node.js is that code-server wants; None: on the path."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "")
    found = _folder() / "node_modules" / f"node-linux-{machine}" / "bin"
    return found if found.exists() else None


def code_server() -> list[str]:
    """The command."""
    folder = _node_folder()
    node = "node" if folder is None else str(folder / "node")
    return [node, str(_folder() / "node_modules" / "code-server" / "out" / "node" / "entry.js")]


def missing() -> str:
    """Why there is no VS Code to test with; empty if there is one."""
    if importlib.util.find_spec("playwright") is None:
        return "the package playwright is not installed"
    if browser() is None:
        return f"there is no Chromium on the path: {_INSTALL}"
    if not (_folder() / "installed").exists():
        return f"there is no code-server in {_folder()}: {_INSTALL}"
    if not (EXTENSION / "node_modules").exists():
        return f"what builds the extension is not installed: {_INSTALL}"
    return ""


@functools.cache
def _kept() -> Path:
    """A folder that lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="midfill-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def extension() -> Path:
    """The `.vsix`, built once from a copy of the extension's folder."""
    copied = _kept() / "vscode"
    shutil.copytree(EXTENSION, copied, ignore=shutil.ignore_patterns("node_modules", "dist", "out", "*.vsix"))
    (copied / "node_modules").symlink_to(EXTENSION / "node_modules")
    node = _node_folder()
    path = os.pathsep.join([*([] if node is None else [str(node)]), os.environ["PATH"]])
    done = subprocess.run(
        ["npm", "run", "package"],
        cwd=copied,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = copied.glob("**/[!.]*.vsix")
    return found


@functools.cache
def extensions() -> Path:
    """A folder with the extension installed, and beside it the one that the tests speak to."""
    folder = _kept() / "extensions"
    shutil.copytree(Path(__file__).parent / "vscode" / "driver", folder / "midfill-tests.driver-1.0.0")
    command = [*code_server(), "--extensions-dir", str(folder), "--user-data-dir", str(folder.parent / "data")]
    command += ["--config", str(folder.parent / "config.yaml"), "--install-extension", str(extension())]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BUILD_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@functools.cache
def builtin_extensions() -> Path:
    """A folder with the few that are needed: a window opens in half the time."""
    folder = _kept() / "builtin"
    folder.mkdir()
    for name in _BUILTIN:
        (folder / name).symlink_to(_folder() / "node_modules" / "code-server" / "lib" / "vscode" / "extensions" / name)
    return folder
