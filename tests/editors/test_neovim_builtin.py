"""What the plugin does around `vim.lsp.inline_completion` of 0.12: the real one, or a stand-in for it before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script
from tests.editors.nvim_editor import Neovim, missing, neovim
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]

STAND_IN = Path(__file__).with_name("nvim_builtin.lua")
INIT = f"""
vim.opt.runtimepath:prepend(Plugin)
vim.lsp.inline_completion = vim.lsp.inline_completion or dofile([[{STAND_IN}]])
vim.api.nvim_set_hl(0, 'ComplHint', {{ link = 'MidfillGhost' }})
"""
ADD = "def add(a, b):\n    return\n"


@pytest.fixture(scope="module")
def editor(folder: Path, server_arguments: list[str]) -> Iterator[Neovim]:
    with neovim(folder / "builtin", server=server_arguments, environ={KEY_ENV: KEY}, init=INIT) as editor:
        yield editor


def visible(editor: Neovim, text: str) -> None:
    def seen() -> bool:
        shown = editor.lua("return require('midfill')._display.visible()")  # the screen may still be the one before
        return bool(shown) and text in "\n".join(editor.screen.lines())

    editor.until(seen, text)


def test_accept_by_word_then_as_a_whole(editor: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "a + b")
    editor.edit(tmp_path / "one.py", ADD, (2, 0))
    before = editor.status()
    editor.insert(" ")
    visible(editor, "return a + b")
    editor.type("<M-w>")
    editor.becomes("def add(a, b):", "    return a")
    visible(editor, "return a + b")
    editor.type("<Tab>")
    editor.becomes("def add(a, b):", "    return a + b")
    assert editor.save() == b"def add(a, b):\n    return a + b\n"
    editor.type("u")
    editor.becomes("def add(a, b):", "    return a")
    after = editor.status()
    assert after["accepted"] - before["accepted"] == 1
    assert after["partiallyAccepted"] - before["partiallyAccepted"] == 1
    assert after["displayed"] > before["displayed"]


def test_accept_what_was_typed_on(editor: Neovim, service: FfmService, tmp_path: Path) -> None:
    """Before the next answer: what is shown belongs to the text as it was."""
    script(service, "a + b")
    editor.type("<Esc>")
    editor.edit(tmp_path / "typed.py", ADD, (2, 0))
    editor.insert(" ")
    visible(editor, "return a + b")
    editor.type("a<Tab>")
    editor.becomes("def add(a, b):", "    return a + b")
    editor.type("  # sum<Esc>")
    editor.becomes("def add(a, b):", "    return a + b  # sum")
    editor.until(lambda: editor.mode == "n", "Normal mode")
    for line in ("    return a + b", "    return a", "    return"):
        editor.type("u")
        editor.becomes("def add(a, b):", line)


def test_several_candidates_and_dismissal(editor: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "c + d", "c - d", "c * d")
    editor.edit(tmp_path / "two.py", "def sub(c, d):\n    return\n", (2, 0))
    before = editor.status()["rejected"]
    editor.insert(" ")
    visible(editor, "return c + d")
    editor.type("<M-]>")
    editor.until(lambda: len(service.log) > 1, "the service was asked for more")
    visible(editor, "return c - d")
    editor.type("<M-]>")
    visible(editor, "(2/")
    editor.type("<C-]>")
    editor.until(lambda: editor.status()["rejected"] == before + 1, "the server knows")
    editor.until(lambda: editor.screen.text(1) == "    return", "it is gone")
    assert editor.lines[1] == "    return "


def test_crlf(editor: Neovim, service: FfmService, tmp_path: Path) -> None:
    script(service, "[\n    1,\n]")
    editor.type("<Esc>")
    editor.edit(tmp_path / "three.py", "x =\r\nprint(x)\r\n", (1, 0))
    editor.insert(" ")
    visible(editor, "    1,")
    assert "^M" not in "\n".join(editor.screen.lines())
    editor.type("<Tab>")
    editor.becomes("x = [", "    1,", "]", "print(x)")
    assert editor.save() == b"x = [\r\n    1,\r\n]\r\nprint(x)\r\n"
