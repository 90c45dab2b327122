"""A real Vim with the plugin on a terminal, driven by keys; what is awaited is awaited by its screen, never by time."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.editors.terminal import WAIT_S, Terminal, missing_terminal, terminal
from tests.lsp_client import ROOT, SERVE

PLUGIN = ROOT / "editors" / "vim"
WIDTH, HEIGHT = 100, 20  # cells
GHOST = "808080"  # the colour of the ghost text here
ESC, ENTER, LEFT, BACKSPACE = "\x1b", "\r", "\x1b[D", "\x7f"
MARK = "\x1b[20~"  # F9, which counts itself
OLDEST = (9, 0, 185)  # what the plugin needs
# A vimrc. The channel lets the tests ask for what no screen shows; it is none of the plugin's.
INIT = """
set nocompatible encoding=utf-8 hidden noswapfile shortmess+=I ttimeout ttimeoutlen=20 t_u7=
set laststatus=2 backspace=indent,eol,start
filetype on
noremap <F9> <Cmd>let g:mark += 1<CR>
noremap! <F9> <Cmd>let g:mark += 1<CR>
let g:mark = 0
let g:asked = ch_open('127.0.0.1:{port}', {{'mode': 'json', 'waittime': 10000}})
let g:plugin = {plugin}
let g:midfill = {options}
{init}
"""


def vim_path() -> str | None:
    return os.environ.get("TEST_VIM") or shutil.which("vim")


@cache
def missing() -> str:
    """Why there is no Vim to test with; empty if there is one."""
    path = vim_path()
    if missing_terminal() or path is None:
        return missing_terminal() or "there is no vim on the path"
    told = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Vi IMproved (\d+)\.(\d+)", told)
    patch = re.search(r"patch(?:es)?: \d+-(\d+)", told)
    found = (int(version[1]), int(version[2]), int(patch[1]) if patch else 0) if version else (0, 0, 0)
    if found < OLDEST:
        return f"Vim {'.'.join(map(str, found))} is older than {'.'.join(map(str, OLDEST))}"
    needed = ("channel", "job", "popupwin", "textprop", "timers", "vim9script")
    lacking = [name for name in needed if f"+{name}" not in told]
    return f"this Vim lacks {', '.join(lacking)}" if lacking else ""


class Vim:
    """One Vim. Keys are typed as a user does; the screen is what a user sees."""

    def __init__(self, terminal: Terminal, asked: socket.socket) -> None:
        self.terminal = terminal
        self._asked = asked
        self._asked.setblocking(False)
        terminal.watched.append(asked.fileno())
        self._rest = ""
        self._answers: dict[int, Any] = {}
        self._number = 0
        self._marks = 0

    # Doing ------------------------------------------------------------------------------------------------------------

    def type(self, keys: str) -> None:
        """Characters as a terminal sends them."""
        self.terminal.type(keys)

    def types(self, keys: str) -> None:
        """Characters that leave Vim in Insert or Normal mode; wait until all have been taken."""
        self._marks += 1
        self.type(keys + MARK)
        self.until(lambda: self.eval("g:mark") >= self._marks, "all keys")
        self._marks = self.eval("g:mark")  # a macro holds some more

    def alt(self, key: str) -> None:
        self.terminal.alt(key)

    def normal(self) -> None:
        self.type(ESC)
        self.until(lambda: self.mode == "n", "Normal mode")

    def typed_command(self, command: str) -> None:
        self.type(f":{command}{ENTER}")

    def command(self, command: str) -> None:
        """Run this now, without a key."""
        self._send(["ex", command])
        self._send(["redraw", ""])
        self.eval("0")

    def eval(self, expression: str) -> Any:
        """What this expression gives, without a key."""
        self._number -= 1
        number = self._number
        self._send(["expr", expression, number])
        self.terminal.until(lambda: self._answered(number), f"the value of {expression}")
        return self._answers.pop(number)

    def edit(self, path: Path, content: str | bytes, at: tuple[int, int]) -> None:
        """Open a new file; the cursor is put before the character at (line from 1, byte column from 0)."""
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.command(f"edit {path} | call cursor({at[0]}, {at[1] + 1})")
        self.until(self.attached, "the server knows the file")

    def insert(self, keys: str = "") -> None:
        """Into Insert mode at the end of the line, then these keys; with keys, entering alone asks for nothing."""
        if keys:
            self.command("set eventignore=InsertEnter,CursorMovedI,ModeChanged")
        self.type("A")
        self.until(lambda: self.mode == "i", "Insert mode")
        self.command("set eventignore=")
        if keys:
            self.type(keys)

    def save(self) -> bytes:
        """Write the file as the user does, return what is on the disk."""
        self.normal()
        self.command("silent write")
        return Path(self.eval("expand('%:p')")).read_bytes()

    # Seeing -----------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        return str(self.eval("mode(1)"))

    @property
    def ghost(self) -> str:
        return self.terminal.coloured(GHOST)

    @property
    def lines(self) -> list[str]:
        return list(self.eval("getline(1, '$')"))

    @property
    def cursor(self) -> tuple[int, int]:
        """Line from 1, byte column from 0."""
        _, line, column, *_ = self.eval("getcurpos()")
        return line, column - 1

    def text(self, row: int) -> str:
        return self.terminal.text(row)

    def attached(self) -> bool:
        return bool(self.eval("midfill#documents#Uri(bufnr())") != "")

    def messages(self) -> list[str]:
        return [line for line in str(self.eval("execute('messages')")).split("\n") if line]

    def status(self) -> dict[str, Any]:
        """What the server counts."""
        self.command("let g:told = [] | call midfill#server#Execute('midfill.status', [], {each -> add(g:told, each)})")
        self.until(lambda: self.eval("len(g:told)") == 1, "the server's status")
        found: dict[str, Any] = self.eval("g:told[0].result")
        return found

    # Waiting ----------------------------------------------------------------------------------------------------------

    def becomes(self, *lines: str) -> None:
        """Wait until this is the text."""
        self.until(lambda: self.lines == list(lines), f"the text {lines}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            assert not any("Press ENTER" in line for line in self.terminal.lines()), (
                "Vim waits for a key:\n" + "\n".join(self.terminal.lines())
            )
            return condition()

        self.terminal.until(holds, what)

    def shows(self, ghost: str) -> None:
        """Wait until this is the ghost text, exactly."""
        self.until(lambda: self.ghost == ghost, f"the ghost text {ghost!r}")

    def _send(self, message: list[Any]) -> None:
        self._asked.sendall((json.dumps(message) + "\n").encode())

    def _answered(self, number: int) -> bool:
        with contextlib.suppress(BlockingIOError):
            self._rest += self._asked.recv(1 << 20).decode()
        while "\n" in self._rest:
            line, self._rest = self._rest.split("\n", 1)
            answered, value = json.loads(line)
            self._answers[answered] = value
        return number in self._answers

    def close(self) -> None:
        """As a user leaves, if nothing is in the way."""
        if not self.terminal.ended:
            with contextlib.suppress(OSError):
                self._send(["ex", "qall!"])
                self.terminal.wait()
        self.terminal.watched.clear()
        self._asked.close()


def vim_value(value: Any) -> str:
    """A Python value as an expression of Vim."""
    text = json.dumps(value).replace("'", "''")
    return f"json_decode('{text}')"


@contextlib.contextmanager
def vim(
    folder: Path,
    *,
    server: list[str] | None = None,
    command: list[str] | None = None,
    options: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    init: str = "execute 'set runtimepath^=' .. g:plugin",
    reports_keys: bool = True,
) -> Iterator[Vim]:
    """Vim as its user starts it, with nothing but the plugin. `server`: arguments of the real server."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {**(options or {}), **({} if server is None else {"cmd": [*(command or SERVE), *server]})}
    path = vim_path()
    assert path is not None
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WAIT_S)
        port = listening.getsockname()[1]
        vimrc = folder / "vimrc"
        text = INIT.format(port=port, plugin=vim_value(str(PLUGIN)), options=vim_value(chosen), init=init)
        vimrc.write_text(text, encoding="utf-8")
        home = {"HOME": str(folder), "PYTHONPATH": str(ROOT), "VIMINIT": "", "EXINIT": ""}
        argv = [path, "-N", "-u", str(vimrc), "-i", "NONE"]
        env = {**home, **(environ or {})}
        with terminal(argv, environ=env, width=WIDTH, height=HEIGHT, reports_keys=reports_keys) as started:
            asked, _ = listening.accept()
            editor = Vim(started, asked)
            try:
                yield editor
            finally:
                editor.close()
