"""The Lua of the Neovim plugin, and of its tests, as luacheck and stylua want it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.lsp_client import ROOT

PLUGIN = ROOT / "editors" / "neovim"
TESTS = Path(__file__).resolve().parent
FILES = sorted([*PLUGIN.rglob("*.lua"), *TESTS.glob("*.lua")])
STYLUA: dict[str, str] = json.loads((TESTS / "stylua" / "package.json").read_text(encoding="utf-8"))["dependencies"]
WRONG = "local Unused = {1,\n  2}\n"


def formatter() -> Path:
    """Where .ci/editors puts the library."""
    ((name, version),) = STYLUA.items()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    chosen = Path(os.environ.get("TEST_EDITORS") or Path(cache) / "midfill-test-editors")
    return chosen / f"stylua-{version}" / "node_modules" / name / "stylua_lib_node.mjs"


needs_luacheck = pytest.mark.skipif(
    shutil.which("luacheck") is None, reason="SKIPPED: there is no luacheck on the path: run .ci/editors"
)
needs_stylua = pytest.mark.skipif(
    shutil.which("node") is None or not formatter().exists(),
    reason=f"SKIPPED: there is no Node.js on the path, or no stylua as {formatter()}: run .ci/editors",
)


def luacheck(*files: Path) -> subprocess.CompletedProcess[str]:
    command = ["luacheck", "--no-color", "--no-cache", "--config", str(PLUGIN / ".luacheckrc"), *map(str, files)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


def formatted(*sources: str) -> list[str]:
    options = json.dumps(tomllib.loads((PLUGIN / "stylua.toml").read_text(encoding="utf-8")))
    done = subprocess.run(
        ["node", str(TESTS / "stylua" / "format.mjs"), str(formatter()), options],
        input=json.dumps(sources),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


@needs_luacheck
def test_luacheck_has_nothing_to_say() -> None:
    done = luacheck(*FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_luacheck
def test_luacheck_says_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "wrong.lua"
    file.write_text(WRONG + "print(unset, vim.g.set)\n", encoding="utf-8")
    done = luacheck(file)
    assert done.returncode == 1
    assert "unused variable 'Unused'" in done.stdout
    assert "undefined variable 'unset'" in done.stdout
    assert "vim" not in done.stdout


@needs_stylua
def test_stylua_changes_nothing() -> None:
    sources = [file.read_text(encoding="utf-8") for file in FILES]
    for file, source, result in zip(FILES, sources, formatted(*sources), strict=True):
        assert result == source, file


@needs_stylua
def test_stylua_changes_what_is_formatted_otherwise() -> None:
    assert formatted(WRONG, 'local a = "b"\n') == ["local Unused = { 1, 2 }\n", "local a = 'b'\n"]
