"""Vim with the plugin where something is missing, dies or refuses, as a package, and with the embedded model."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.life import LOCAL, NOT_INSTALLED, children, refused_more, told
from tests.editors.terminal import await_end
from tests.editors.vim_editor import ENTER, PLUGIN, Vim, missing, vim, vim_path
from tests.llama_child import needs_llama
from tests.lsp_client import ROOT
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"
# What a user of Vim's packages has: the folder under `pack`, and nothing else. Keys that were mapped before.
PACKAGE = """
packadd midfill
helptags ALL
inoremap <Tab> [tab]
inoremap <expr> <C-]> <SID>expr('[', ']')
function! s:expr(a, b) abort
  return a:a .. col('.') .. a:b
endfunction
imap <M-l> <M-l>!
inoreabbrev teh the
"""


def servers(editor: Vim) -> list[psutil.Process]:
    return children(editor.terminal.process.pid)


@pytest.fixture(scope="module")
def packaged(folder: Path, server_arguments: list[str]) -> Iterator[Vim]:
    """Installed as a package, on a terminal that sends Esc for Alt; other mappings were there before."""
    target = folder / "vim" / ".vim" / "pack" / "midfill" / "opt" / "midfill"
    shutil.copytree(PLUGIN, target)
    with vim(
        folder / "vim",
        server=server_arguments,
        options={"keys": {"next": ""}},
        environ={KEY_ENV: KEY},
        init=PACKAGE,
        reports_keys=False,
    ) as editor:
        yield editor
        (server,) = servers(editor)
        editor.close()
        await_end(server)


def test_keys_with_esc_for_alt(packaged: Vim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    packaged.edit(tmp_path / "esc.py", ADD, (2, 0))
    packaged.insert(" ")
    packaged.shows("a + b")
    packaged.alt("w")
    packaged.shows(" + b")
    assert packaged.lines == ["def add(a, b):", "    return a"]
    packaged.type("\t")
    packaged.becomes("def add(a, b):", "    return a + b")


def test_keys_with_esc_where_nothing_is_shown(packaged: Vim, service: FfmService, tmp_path: Path) -> None:
    """They are Esc and a letter, as before."""
    script(service, "")
    packaged.normal()
    packaged.edit(tmp_path / "plain.py", "one two three\n", (1, 0))
    packaged.insert("x")
    packaged.type("\x1b0\x1bw")
    packaged.until(lambda: packaged.mode == "n" and packaged.cursor == (1, 4), "on the next word")
    packaged.type(":normal! x\x1bw")
    packaged.until(lambda: packaged.mode == "n" and packaged.cursor == (1, 8), "the command line is left, then a word")
    assert packaged.lines == ["one two threex"]
    packaged.command('let @q = "iy\\<Esc>w"')
    packaged.type("0@q")
    packaged.until(lambda: packaged.lines == ["yone two threex"] and packaged.cursor == (1, 5), "the macro")


def test_the_mappings_that_were_there_before(packaged: Vim, service: FfmService, tmp_path: Path) -> None:
    script(service, "")
    packaged.normal()
    packaged.edit(tmp_path / "mapped.py", "x\n", (1, 0))
    packaged.insert("\t")
    packaged.becomes("x[tab]")
    packaged.terminal.control("]")
    packaged.becomes("x[tab][7]")
    assert packaged.eval("maparg('<M-]>', 'i')") == ""  # an empty key is left alone


def test_help(packaged: Vim, tmp_path: Path) -> None:
    packaged.normal()
    for tag in ("midfill", ":Midfill", "g:midfill", "midfill-keys", "midfill-server", "hl-MidfillGhost"):
        packaged.command(f"help {tag}")
        assert packaged.eval("&filetype") == "help"
    packaged.command("only!")


@pytest.mark.parametrize(
    ("command", "shown"), [("", "displayed: "), ("status", "server: "), ("explain", "reason: "), ("log", "")]
)
def test_what_the_server_tells(packaged: Vim, service: FfmService, tmp_path: Path, command: str, shown: str) -> None:
    script(service, "")
    packaged.normal()
    packaged.command("only!")
    packaged.edit(tmp_path / "told.py", ADD, (2, 0))
    before = packaged.status()["counts"]["empty"]
    packaged.insert(" ")
    packaged.until(lambda: packaged.status()["counts"]["empty"] > before, "an answer")
    packaged.normal()
    for _ in range(2):  # the second time in its place
        packaged.type(f":Midfill {command}{ENTER}")
        packaged.until(lambda: packaged.eval("&buftype") == "nofile", "a window")
        packaged.command("wincmd p")
    packaged.until(lambda: packaged.eval("winnr('$')") == 2, "one window of it")
    packaged.command("wincmd p")
    assert shown in "\n".join(packaged.lines)
    packaged.command("close")


def test_a_killed_server_is_started_again(packaged: Vim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    packaged.normal()
    packaged.edit(tmp_path / "killed.py", ADD, (2, 0))
    kill_server(packaged)
    packaged.until(packaged.attached, "another one knows the file")
    packaged.insert(" ")
    packaged.shows("a + b")
    packaged.type("\t")
    packaged.becomes("def add(a, b):", "    return a + b")
    for _ in range(3):
        kill_server(packaged)
        packaged.until(packaged.attached, "another one knows the file")
    kill_server(packaged)
    packaged.until(lambda: any("in a row" in message for message in packaged.messages()), "the message")
    assert packaged.mode == "i", "nothing stands between the user and the text"
    assert packaged.eval("midfill#Status()[0]") == "error"
    packaged.normal()
    packaged.type(f":Midfill restart{ENTER}")
    packaged.until(packaged.attached, "it knows the file")


def kill_server(editor: Vim) -> None:
    (process,) = servers(editor)
    process.kill()
    editor.until(lambda: process not in servers(editor) and not editor.attached(), "Vim knows")


def test_an_error_of_the_backend_is_told_once(folder: Path, server_arguments: list[str], tmp_path: Path) -> None:
    with vim(folder / "refused", server=server_arguments, environ={KEY_ENV: "wrong"}) as editor:
        editor.edit(tmp_path / "one.py", ADD, (2, 0))
        editor.insert(" ")
        editor.until(lambda: told(editor) != [], "the message")
        assert editor.mode == "i", "nothing stands between the user and the text"
        editor.until(lambda: "midfill: " in "\n".join(editor.terminal.lines()), "the message on the screen")
        for typed in ("(", "[", "{"):
            more = refused_more(editor)
            editor.type(typed)
            editor.until(more, "refused again")
        (message,) = told(editor)
        assert "401" in message or "key" in message
        assert editor.eval("midfill#Status()[0]") == "error"


def test_who_types_before_the_server_can_be_asked_gets_a_suggestion(
    folder: Path, service: FfmService, server_arguments: list[str], tmp_path: Path
) -> None:
    script(service, "a + b")
    file = tmp_path / "early.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    with vim(folder / "early", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.command(f"edit {file}")
        editor.type("2GA")
        editor.shows("a + b")


def test_a_missing_server_is_told_once_with_the_command_to_run(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    copied = tmp_path / "plugin"
    shutil.copytree(PLUGIN, copied)
    init = f"set nottimeout timeoutlen=1000 runtimepath^={copied}"
    with vim(folder / "missing", environ={"PATH": str(empty)}, init=init) as editor:
        for name in ("one.py", "two.py"):
            (tmp_path / name).write_text("x\n")
            editor.command(f"edit {tmp_path / name}")
        editor.until(lambda: told(editor) != [], "the message")
        assert told(editor) == [NOT_INSTALLED]
        editor.type(f":Midfill{ENTER}")
        editor.until(lambda: "server: not found" in "\n".join(editor.terminal.lines()), "where it was looked for")
        assert "keys: for keys with Alt set ttimeout" in "\n".join(editor.lines)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"keys": {"acept": "x"}}, "no option is called keys.acept"),
        ({"keys": 3}, "keys must be a dictionary"),
        ({"cmd": "midfill"}, "cmd must be a list"),
    ],
)
def test_wrong_options_are_named(folder: Path, options: dict[str, object], problem: str) -> None:
    with vim(folder / "options", options=options, environ={"PATH": ""}) as editor:
        editor.until(lambda: f"midfill: {problem}" in editor.messages(), "the message")


def test_an_old_vim_says_what_is_missing(folder: Path) -> None:
    """The plugin's own check, in a Vim that has less by its word."""
    plugin = folder / "old"
    shutil.copytree(PLUGIN, plugin)
    file = plugin / "plugin" / "midfill.vim"
    file.write_text(file.read_text(encoding="utf-8").replace("9.0.0185", "9.9.9999"), encoding="utf-8")
    with vim(folder / "older", init=f"set runtimepath^={plugin}") as editor:
        editor.until(lambda: "midfill needs Vim 9.9.9999 or newer" in editor.messages(), "the message")


def test_every_function_compiles(tmp_path: Path) -> None:
    """Vim compiles one when it is first called; what is wrong in it would be told to the user then."""
    plugin = tmp_path / "plugin"
    shutil.copytree(PLUGIN, plugin)
    files = sorted((plugin / "autoload").rglob("*.vim"))
    assert len(files) > 5
    for file in files:
        file.write_text(file.read_text(encoding="utf-8") + "defcompile\n", encoding="utf-8")
    commands = [f"set runtimepath^={plugin}", "runtime plugin/midfill.vim", *(f"source {file}" for file in files)]
    script_file = tmp_path / "compile.vim"
    script_file.write_text("\n".join([*commands, "qall!"]), encoding="utf-8")
    path = vim_path()
    assert path is not None
    argv = [path, "-N", "-u", "NONE", "-i", "NONE", "-V1", "-es", "-S", str(script_file)]
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert (done.stderr.strip(), done.returncode) == ("", 0)


@pytest.mark.model
@needs_llama
def test_the_embedded_model(folder: Path, tmp_path: Path) -> None:
    """What the README shows; with TEST_PICTURES the picture is kept in that folder."""
    config = folder / "local.toml"
    config.write_text(LOCAL, encoding="utf-8")
    init = "execute 'set runtimepath^=' .. g:plugin\nset number termguicolors background=dark\nsyntax on\n"
    init += r"set statusline=\ %t\ %m%=\ %{midfill#Statusline()}\ "
    with vim(folder / "local", server=["--config", str(config)], init=init) as editor:
        text = (ROOT / "examples" / "inventory.py").read_text(encoding="utf-8")
        editor.edit(tmp_path / "inventory.py", text, (24, 0))
        editor.insert()
        editor.shows(".price * item.quantity")
        editor.until(lambda: not editor.eval("midfill#Statusline()").endswith("…"), "done")
        if pictures := os.environ.get("TEST_PICTURES"):
            editor.command("redrawstatus")
            screen = editor.terminal.screen
            picture = screen.svg("Vim with a suggestion behind the cursor", rows=screen.height - 1)
            (Path(pictures) / "vim.svg").write_text(picture, encoding="utf-8")
        editor.type("\t")
        editor.until(lambda: editor.lines[23].endswith("item.price * item.quantity"), "the text")
        assert editor.save().decode() == text.replace("total += item\n", "total += item.price * item.quantity\n")
