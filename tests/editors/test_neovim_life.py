"""Neovim with the plugin where something is missing, dies or refuses, as a package, and with the embedded model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.life import LOCAL, NOT_INSTALLED, children, refused_more, told
from tests.editors.nvim_editor import PLUGIN, Neovim, missing, neovim
from tests.llama_child import needs_llama
from tests.lsp_client import ROOT
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

ADD = "def add(a, b):\n    return\n"
# What a user of Neovim's packages has: the folder under `pack`, and nothing else.
PACKAGE = """
vim.cmd.packadd('midfill')
vim.cmd.helptags(vim.fn.stdpath('data') .. '/site/pack/midfill/opt/midfill/doc')
vim.g.before = 0
vim.keymap.set('i', '<Tab>', function() vim.g.before = vim.g.before + 1 end)
"""


def servers(editor: Neovim) -> list[psutil.Process]:
    return children(editor.lua("return vim.fn.getpid()"))


@pytest.fixture(scope="module")
def packaged(folder: Path, server_arguments: list[str]) -> Iterator[Neovim]:
    """Installed as a package; a client that knows columns in bytes only."""
    target = folder / "nvim" / "data" / "nvim" / "site" / "pack" / "midfill" / "opt" / "midfill"
    shutil.copytree(PLUGIN, target)
    options = {"lsp": {"capabilities": {"general": {"positionEncodings": ["utf-8"]}}}}
    with neovim(
        folder / "nvim", server=server_arguments, options=options, environ={KEY_ENV: KEY}, init=PACKAGE
    ) as editor:
        yield editor


def test_columns_in_bytes(packaged: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "'größe'")
    packaged.edit(tmp_path / "bytes.py", "naïve = '😎é𠀀'; x =\n", (1, 0))
    assert packaged.lua("return require('midfill.server').client().offset_encoding") == "utf-8"
    packaged.insert(" ")
    packaged.shows("'größe'")
    packaged.type("<Tab>")
    packaged.becomes("naïve = '😎é𠀀'; x = 'größe'")
    assert packaged.lua("return vim.g.before") == 0


def test_the_mapping_that_was_there_before(packaged: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "")
    packaged.type("<Esc>")
    packaged.edit(tmp_path / "mapped.py", "x\n", (1, 0))
    packaged.insert("<Tab>")
    packaged.until(lambda: packaged.lua("return vim.g.before") == 1, "the mapping")
    assert packaged.lines == ["x"]


def test_help_and_health(packaged: Neovim, tmp_path: Path) -> None:
    packaged.type("<Esc>")
    packaged.edit(tmp_path / "health.py", "x\n", (1, 0))
    for tag in ("midfill", ":Midfill", "midfill.setup()", "midfill-keys", "midfill-options", "midfill-server"):
        packaged.command(f"help {tag}")
        assert packaged.lua("return vim.bo.filetype") == "help"
    packaged.command("only")
    packaged.command("checkhealth midfill")
    text = "\n".join(packaged.lines)
    assert "ERROR" not in text
    assert "WARNING" not in text
    assert "columns in utf-8" in text
    assert "server: " in text


@pytest.mark.parametrize(("command", "shown"), [("Midfill", "displayed ="), ("Midfill explain", "reason =")])
def test_what_the_server_tells(packaged: Neovim, service: FfmService, tmp_path: Path, command: str, shown: str) -> None:
    script(service, "")
    packaged.type("<Esc>")
    packaged.edit(tmp_path / "told.py", ADD, (2, 0))
    before = packaged.status()["counts"]["empty"]
    packaged.insert(" ")
    packaged.until(lambda: packaged.status()["counts"]["empty"] > before, "an answer")
    packaged.type("<Esc>")
    packaged.command("only!")
    packaged.command(command)
    packaged.until(lambda: shown in "\n".join(packaged.lines), "the answer in a window")
    assert packaged.lua("return vim.bo.buftype") == "nofile"
    packaged.command("close")


def test_a_killed_server_is_started_again(packaged: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    packaged.edit(tmp_path / "killed.py", ADD, (2, 0))
    kill_server(packaged)
    packaged.until(packaged.attached, "another one knows the file")
    packaged.insert(" ")
    packaged.shows("a + b")
    packaged.type("<Tab>")
    packaged.becomes("def add(a, b):", "    return a + b")
    for _ in range(3):
        kill_server(packaged)
        packaged.until(packaged.attached, "another one knows the file")
    kill_server(packaged)
    packaged.until(lambda: given_up(packaged), "the message")
    assert packaged.lua("return (require('midfill').status())") == "error"
    packaged.command("Midfill restart")
    packaged.until(packaged.attached, "it knows the file")


def kill_server(editor: Neovim) -> None:
    number = "return require('midfill.server').state.client_id"
    client = editor.lua(number)
    (process,) = servers(editor)
    process.kill()
    editor.until(lambda: editor.lua(number) != client, "Neovim knows")


def given_up(editor: Neovim) -> bool:
    return any("in a row" in message for message in editor.messages())


def test_who_types_before_the_server_can_be_asked_gets_a_suggestion(
    folder: Path, service: FfmService, server_arguments: list[str], tmp_path: Path
) -> None:
    script(service, "a + b")
    file = tmp_path / "early.py"
    file.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    with neovim(folder / "early", server=server_arguments, environ={KEY_ENV: KEY}) as editor:
        editor.command(f"edit {file}")
        assert not editor.attached()
        editor.type("2GA")
        editor.shows("a + b")


def test_an_error_of_the_backend_is_told_once(folder: Path, server_arguments: list[str], tmp_path: Path) -> None:
    with neovim(folder / "refused", server=server_arguments, environ={KEY_ENV: "wrong"}) as editor:
        editor.edit(tmp_path / "one.py", ADD, (2, 0))
        editor.insert(" ")
        editor.until(lambda: told(editor) != [], "the message")
        assert editor.mode == "i", "nothing stands between the user and the text"
        for typed in ("(", "[", "{"):
            more = refused_more(editor)
            editor.type(typed)
            editor.until(more, "refused again")
        (message,) = told(editor)
        assert "401" in message or "key" in message
        editor.until(lambda: editor.lua("return (require('midfill').status())") == "error", "the status")


def test_a_missing_server_is_told_once_with_the_command_to_run(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    copied = tmp_path / "plugin"
    shutil.copytree(PLUGIN, copied)
    init = f"vim.opt.runtimepath:prepend([[{copied}]]) vim.env.HOME = [[{empty}]]"
    with neovim(folder / "missing", environ={"PATH": str(empty)}, init=init) as editor:
        for name in ("one.py", "two.py"):
            (tmp_path / name).write_text("x\n")
            editor.command(f"edit {tmp_path / name}")
        editor.until(lambda: told(editor) != [], "the message")
        (message,) = told(editor)
        assert message == NOT_INSTALLED
        editor.command("checkhealth midfill")
        assert "ERROR the server is not installed" in "\n".join(editor.lines)


def test_wrong_options_are_named(folder: Path) -> None:
    with neovim(folder / "options") as editor:
        for options, problem in (
            ("{ keys = { acept = 'x' } }", "no option is called keys.acept"),
            ("{ keys = 3 }", "keys must be a table"),
        ):
            found = editor.lua(f"return select(2, pcall(require('midfill').setup, {options}))")
            assert found == f"midfill: {problem}"


@pytest.mark.model
@needs_llama
def test_the_embedded_model(folder: Path, tmp_path: Path) -> None:
    """What the README shows; with TEST_PICTURES the picture is kept in that folder."""
    config = folder / "local.toml"
    config.write_text(LOCAL, encoding="utf-8")
    init = "vim.opt.runtimepath:prepend(Plugin)\nvim.opt.number = true\nvim.opt.termguicolors = true\n"
    init += """vim.opt.statusline = " %t %m%= %{v:lua.require'midfill'.statusline()} " """
    with neovim(folder / "local", server=["--config", str(config)], init=init) as editor:
        text = (ROOT / "examples" / "inventory.py").read_text(encoding="utf-8")
        editor.edit(tmp_path / "inventory.py", text, (24, 0))
        editor.insert()
        editor.shows(".price * item.quantity")
        editor.until(lambda: not editor.lua("return require('midfill').statusline()").endswith("…"), "done")
        if pictures := os.environ.get("TEST_PICTURES"):
            picture = editor.screen.svg("Neovim with a suggestion behind the cursor", rows=editor.screen.height - 1)
            (Path(pictures) / "neovim.svg").write_text(picture, encoding="utf-8")
        editor.type("<Tab>")
        editor.until(lambda: editor.lines[23].endswith("item.price * item.quantity"), "the text")
        assert editor.save().decode() == text.replace("total += item\n", "total += item.price * item.quantity\n")
