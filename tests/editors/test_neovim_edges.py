"""Neovim with the plugin in the corners of Insert mode, and where buffers, files and servers change under it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.nvim_editor import WAIT_S, Neovim, lua_value, missing, neovim
from tests.editors.tap import messages, tapped
from tests.lsp_client import SERVE, client_params
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"
CLIENT = "return require('midfill.server').state.client_id"
STATUS = "return (require('midfill').status())"
WAITING = "return require('midfill')._display.waiting()"


@pytest.fixture(scope="module")
def tap(folder: Path) -> Path:
    return folder / "messages.jsonl"


@pytest.fixture(scope="module")
def shared(folder: Path, server_arguments: list[str], tap: Path) -> Iterator[Neovim]:
    options = {"cmd": tapped(tap, [*SERVE, *server_arguments])}
    with neovim(folder / "nvim", options=options, environ={KEY_ENV: KEY}) as editor:
        editor.edit(folder / "first.py", "", (1, 0))
        yield editor


@pytest.fixture
def editor(shared: Neovim, service: FfmService) -> Iterator[Neovim]:
    """One Neovim for all tests that leave it as it was. Nothing may have been told to the user."""
    service.reset()
    shared.type("<Esc>")
    shared.until(lambda: shared.mode == "n", "Normal mode")
    shared.shows("")
    shared.lua("require('midfill.server').execute('midfill.clearCache', {})")
    shared.command("messages clear")
    yield shared
    shared.type("<Esc>")
    shared.command("silent! only!")
    assert [each for each in shared.messages() if "written" not in each and "#" not in each] == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "code.py"


def initialize(tap: Path) -> dict[str, Any]:
    """What a client says of itself first, without what is of this run."""
    params: dict[str, Any] = messages(tap, "initialize")[0]["params"]
    del params["workDoneToken"]
    params["processId"] = None
    version = params["clientInfo"]["version"].partition("+")[0]
    params["clientInfo"]["version"] = version
    for name in ("rootPath", "rootUri", "workspaceFolders"):
        params[name] = None
    params["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] = False  # true but on Linux
    if version != "0.11.4":
        pytest.skip(f"SKIPPED: Neovim is {version}, not the one whose parameters are kept")
    return params


def recorded(name: str) -> dict[str, Any]:
    return {**client_params(name), "rootPath": None, "rootUri": None, "workspaceFolders": None}


def test_the_recorded_clients_are_these(editor: Neovim, folder: Path, tap: Path) -> None:
    """tests/clients has what Neovim says of itself, for tests without one: with the plugin, and without any."""
    assert initialize(tap) == recorded("neovim-0.11.4")
    alone = folder / "alone.jsonl"
    editor.lua(f"vim.lsp.start({{ name = 'alone', cmd = {lua_value(tapped(alone, [*SERVE]))} }}, {{ attach = false }})")
    editor.until(lambda: messages(alone, "initialized") != [], "the server knows the client")
    assert initialize(alone) == recorded("neovim-0.11.4-alone")
    editor.lua("vim.lsp.stop_client(vim.lsp.get_clients({ name = 'alone' }))")


def test_the_client_that_could_not_be_recorded() -> None:
    """Of 0.12 the source was read: with the plugin or without one it says what 0.11 says with it. Here on macOS, where
    Neovim watches files."""
    expected = client_params("neovim-0.11.4")
    expected["clientInfo"]["version"] = "0.12.0"
    expected["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] = True
    assert client_params("neovim-0.12") == expected


def silent(editor: Neovim, service: FfmService) -> bool:
    """Nothing was asked, so that nothing can come."""
    return not editor.lua(WAITING) and editor.ghost == "" and service.log == []


def test_the_popup_menu_hides_a_suggestion_and_gives_it_back(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "alpha + beta")
    editor.command("set completeopt=menuone,noinsert")
    editor.edit(file, "def add(alpha, beta):\n    return\n", (2, 0))
    editor.insert(" ")
    editor.shows("alpha + beta")
    editor.type("<C-n>")
    editor.until(lambda: editor.lua("return vim.fn.pumvisible()") == 1, "the menu")
    editor.shows("")
    editor.type("<C-e>")
    editor.shows("alpha + beta")
    editor.type("<C-n><Tab><C-e>")
    editor.until(lambda: editor.lines[1] not in ("    return ", "    return alpha + beta"), "the menu has the keys")
    editor.command("set completeopt&")


@pytest.mark.parametrize(("before", "after"), [("set paste", "set nopaste"), ("normal! qq", "normal! q")])
def test_nothing_is_asked_where_it_could_not_be_accepted(
    editor: Neovim, service: FfmService, file: Path, before: str, after: str
) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    editor.command(before)
    editor.insert()
    editor.type(" ")
    editor.becomes("def add(a, b):", "    return ")
    assert silent(editor, service)
    editor.type("<Esc>")
    editor.until(lambda: editor.mode == "n", "Normal mode")
    editor.command(after)
    editor.type("A<BS> ")
    editor.shows("a + b")


def test_nothing_is_asked_behind_the_end_of_the_line(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    editor.command("set virtualedit=all")
    editor.type("$5li")
    editor.until(lambda: editor.mode == "i", "Insert mode")
    assert silent(editor, service)
    editor.type("x ")
    editor.until(lambda: editor.lines[1].endswith("x "), "typed")
    editor.shows("a + b")
    editor.command("set virtualedit=")


def test_a_macro_replays_what_was_typed(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, "one\ntwo\nthree\n", (1, 0))
    editor.type("qqA = x<Esc>jq")
    editor.becomes("one = x", "two", "three")
    editor.type("@q@q")
    editor.becomes("one = x", "two = x", "three = x")


def test_dot_repeats_what_was_accepted(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "[\n    1,\n]")
    editor.edit(file, "one\ntwo\nthree\n", (1, 0))
    editor.insert(" = ")
    editor.shows("[\n    1,\n]")
    editor.type("<Tab>")
    editor.becomes("one = [", "    1,", "]", "two", "three")
    editor.type("  # list<Esc>j.")
    editor.becomes("one = [", "    1,", "]  # list", "two = [", "    1,", "]  # list", "three")


def test_on_a_line_that_was_indented_by_itself(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "return a\n    # done")
    editor.edit(file, "def f(a):\n    b = a\n", (2, 0))
    editor.insert("<CR>")
    editor.shows("return a\n    # done")
    editor.type("<Tab>")
    accepted = ("def f(a):", "    b = a", "    return a", "    # done")
    editor.becomes(*accepted)
    editor.type("<Esc>")
    editor.until(lambda: editor.mode == "n", "Normal mode")
    assert editor.lines == list(accepted), "no indentation is taken away"


@pytest.mark.parametrize("keys", ["<Cmd>2,3delete<CR>", "<Cmd>bwipeout!<CR>", "<Cmd>edit!<CR>"])
def test_what_was_asked_about_is_gone(editor: Neovim, service: FfmService, file: Path, keys: str) -> None:
    script(service, "a + b", hold_after=2)
    editor.edit(file, "one\ntwo\nthree\n", (3, 0))
    editor.insert(" =")
    until(service, generating=1)
    editor.type(keys)
    until(service, disconnected=1)
    service.release()
    assert editor.ghost == ""


def test_a_buffer_that_gets_a_name_and_one_that_gets_another(
    editor: Neovim, service: FfmService, tmp_path: Path
) -> None:
    script(service, "a + b")
    editor.command("enew")
    editor.type("ix<Esc>")
    editor.until(lambda: editor.lines == ["x"], "typed")
    assert not editor.attached(), "it is no file"
    editor.command(f"silent write {tmp_path / 'noextension'}")
    assert editor.attached()
    editor.insert(" = ")
    editor.shows("a + b")
    editor.type("<Esc>")
    editor.command(f"silent saveas {tmp_path / 'other.py'}")
    script(service, "c + d")
    editor.insert("(")
    editor.shows("c + d")
    assert service.log[-1].body["inputs"].count("x = (") == 1


@pytest.mark.parametrize(
    ("command", "asked"),
    [("setlocal binary", False), ("setlocal buftype=prompt", False), ("", True)],
)
def test_which_buffers_the_server_knows(editor: Neovim, tmp_path: Path, command: str, asked: bool) -> None:
    editor.command("enew")
    editor.command(command)
    editor.command(f"file {tmp_path / 'kind.py'}")
    editor.command("doautocmd BufEnter")
    assert editor.attached() is asked
    editor.command("bwipeout!")


def test_a_file_in_another_encoding(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "'größe'")
    editor.edit(file, "naïve = 1\nx =\n".encode("latin-1"), (2, 0))
    editor.insert(" ")
    editor.shows("'größe'")
    editor.type("<Tab>")
    editor.becomes("naïve = 1", "x = 'größe'")
    assert editor.save() == "naïve = 1\nx = 'größe'\n".encode("latin-1")


def test_a_server_that_was_told_to_end_is_not_started_again(editor: Neovim, service: FfmService, file: Path) -> None:
    script(service, "a + b")
    editor.edit(file, ADD, (2, 0))
    for force in ("false", "true"):
        editor.lua(
            f"Config = require('midfill.server').client().config; vim.lsp.stop_client({editor.lua(CLIENT)}, {force})"
        )
        editor.until(lambda: editor.lua(STATUS) == "stopped", "it ended")
        editor.command("Midfill status")
        editor.until(lambda: len(editor.messages()) == 1, "the message")
        assert editor.messages() == ["midfill: the server is not running; see :checkhealth midfill"]
        editor.command("messages clear")
        editor.lua("vim.lsp.start(Config, { bufnr = 0 })")  # as :lsp restart does
        editor.until(editor.attached, "the plugin knows the one that somebody else has started")
    editor.insert(" ")
    editor.shows("a + b")


def test_set_up_again_a_key_still_does_what_it_did(editor: Neovim, service: FfmService, file: Path) -> None:
    vim = file.with_suffix(".vim")
    vim.write_text(
        "function! s:key()\n  return 'mine'\nendfunction\ninoremap <expr> <Tab> <SID>key()\n", encoding="utf-8"
    )
    script(service, "")
    editor.command(f"source {vim}")
    for _ in range(2):
        editor.lua("require('midfill').setup({ cmd = require('midfill.config').options.cmd })")
    editor.edit(file, "x\n", (1, 0))
    editor.insert("<Tab>")
    editor.becomes("xmine")


def test_the_end_while_a_request_is_under_way(
    folder: Path, server_arguments: list[str], service: FfmService, file: Path
) -> None:
    script(service, "a + b", hold_after=1)
    with neovim(folder / "quit", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.edit(file, ADD, (2, 0))
        editor.insert(" ")
        until(service, generating=1)
        process = psutil.Process(editor.lua("return vim.fn.getpid()"))
        servers = process.children(recursive=True)
        with contextlib.suppress(EOFError, OSError):
            editor.command("qall!")
        deadline = time.monotonic() + WAIT_S
        while any(map(running, [process, *servers])):
            assert time.monotonic() < deadline, "it ends, and so does the server"
            psutil.wait_procs([process, *servers], 0.1)
    service.release()


def running(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
