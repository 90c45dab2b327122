"""What Vim tells the server: the text as it is after every kind of change, and what it can do; odd texts are shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, script, until
from tests.editors.tap import messages, tapped
from tests.editors.vim_editor import BACKSPACE, ENTER, ESC, LEFT, Vim, missing, vim
from tests.lsp_client import CLIENTS, SERVE
from tests.services.ffm import FfmService

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")]


@pytest.fixture(scope="module")
def wire(folder: Path) -> Path:
    """What Vim has written to the server."""
    return folder / "wire.jsonl"


@pytest.fixture(scope="module")
def editor(folder: Path, server_arguments: list[str], wire: Path) -> Iterator[Vim]:
    environ = {KEY_ENV: KEY}
    with vim(folder / "vim", server=server_arguments, command=tapped(wire, list(SERVE)), environ=environ) as editor:
        yield editor


def replayed(wire: Path, uri: str) -> str | None:
    """The document as a server that heard all this has it; None if it is closed."""
    text: str | None = None
    for message in messages(wire):
        params = message.get("params") or {}
        if (params.get("textDocument") or {}).get("uri") != uri:
            continue
        if message["method"] == "textDocument/didOpen":
            assert text is None
            text = params["textDocument"]["text"]
        elif message["method"] == "textDocument/didClose":
            text = None
        elif message["method"] == "textDocument/didChange":
            assert text is not None
            for change in params["contentChanges"]:
                text = changed(text, change)
    return text


def changed(text: str, change: dict[str, Any]) -> str:
    if "range" not in change:
        return str(change["text"])
    lines = text.split("\n")
    ends = [
        sum(len(line) + 1 for line in lines[: place["line"]]) + place["character"]
        for place in (change["range"]["start"], change["range"]["end"])
    ]
    assert ends[0] <= ends[1] <= len(text)
    return f"{text[: ends[0]]}{change['text']}{text[ends[1] :]}"


def check(editor: Vim, wire: Path) -> None:
    """Wait until the server knows the buffer's text."""
    editor.normal()
    path = Path(editor.eval("expand('%:p')"))
    expected = "".join(f"{line}\n" for line in editor.lines)
    editor.until(lambda: replayed(wire, path.as_uri()) == expected, f"the server knows {expected!r}")


LINES = "".join(f"line {number} äöü 😎\n" for number in range(12))
CHANGES = {
    "typing": f"A typed{BACKSPACE}{BACKSPACE}x{LEFT}y",
    "lines": f"oa{ENTER}b{ENTER}{ENTER}c",
    "above": "ggOfirst",
    "joined": "ggJJ",
    "backspace over the end of a line": f"2GI{BACKSPACE}{BACKSPACE}",
    "deleted and put back": "dd3ddPpu",
    "moved": f":2,4move $|1move 5|3copy 0{ENTER}",
    "all": f":%delete{ENTER}ix",
    "all, and back": f":%delete{ENTER}u",
    "substituted": f":%s/e/EE/g{ENTER}u",
    "into more lines": rf":%s/ /\r/g{ENTER}",
    "global": f":global/[2468]/delete{ENTER}",
    "reversed": f":global/^/move 0{ENTER}",
    "doubled": f":global/[37]/normal yyPp{ENTER}",
    "filtered": f":2,8!sort -r{ENTER}",
    "filtered to nothing": f":2,8!true{ENTER}",
    "a block": "3G0\x16jjIblock ",
    "indented": "gg>G",
    "repeated": "ggAx\x1bj.j.5.",
    "a macro": "qqA!\x1bjq3@q",
    "read": ":read !printf 'a\\nb\\n'\r",
    "reloaded": "ggdd:edit!\r",
    "undone and redone": "ggddGddgg~uuu\x12\x12",
    "by a function": ":call setline(2, ['one', 'two']) | call append(0, ['zero']) | call deletebufline('%', 4, 6)\r",
    "another name": ":silent file other.py\r",
}


@pytest.mark.parametrize("keys", CHANGES.values(), ids=CHANGES)
def test_the_server_knows_the_text(editor: Vim, service: FfmService, wire: Path, tmp_path: Path, keys: str) -> None:
    script(service, "")
    editor.normal()
    editor.command(f"cd {tmp_path}")
    editor.edit(tmp_path / "text.py", LINES, (6, 3))
    editor.types(keys + ESC)
    check(editor, wire)


FILES = {
    "empty": (b"", b"x\n"),
    "a line": (b"\n", b"x\n"),
    "no end": (b"a", b"ax\n"),
    "mark": (b"\xef\xbb\xbfa\nb\n", b"\xef\xbb\xbfax\nb\n"),
    "CRLF": (b"a\r\nb\r\n", b"ax\r\nb\r\n"),
    "mixed": (b"a\r\nb\n", b"a\rx\nb\n"),
    "NUL": (b"a\0b\n", b"a\0bx\n"),
    "CR": (b"a\rb\n", b"a\rbx\n"),
    "no UTF-8": (b"\xff\xfe\n", b"\xff\xfex\n"),
    "form feed": (b"a\fb\xe2\x80\xa8c\n", b"a\fb\xe2\x80\xa8cx\n"),
}


@pytest.mark.parametrize(("content", "saved"), FILES.values(), ids=FILES)
def test_any_file(editor: Vim, service: FfmService, wire: Path, tmp_path: Path, content: bytes, saved: bytes) -> None:
    """One line end behind each line; what would end a line is a blank, so that each column is the buffer's."""
    script(service, "")
    editor.normal()
    path = tmp_path / "any.py"
    editor.edit(path, content, (1, 0))
    widths = editor.eval("getline(1, '$')->map('strchars(v:val)')")
    editor.until(lambda: replayed(wire, path.as_uri()) is not None, "the server has it")
    text = replayed(wire, path.as_uri())
    assert text is not None
    assert [len(line) for line in text.split("\n")] == [*widths, 0]
    assert "\r" not in text
    editor.types("Ax")
    editor.until(lambda: replayed(wire, path.as_uri()) == text.replace("\n", "x\n", 1), "the character")
    assert editor.save() == saved


def test_what_is_saved_was_told(editor: Vim, service: FfmService, wire: Path, tmp_path: Path) -> None:
    script(service, "")
    editor.normal()
    editor.edit(tmp_path / "saved.py", "x\n", (1, 0))
    editor.command("call setline(1, 'y') | silent write")
    editor.until(lambda: messages(wire)[-1].get("method") == "textDocument/didSave", "saved")
    assert replayed(wire, (tmp_path / "saved.py").as_uri()) == "y\n"


def test_closed_and_changed_language(editor: Vim, service: FfmService, wire: Path, tmp_path: Path) -> None:
    script(service, "")
    editor.normal()
    path = tmp_path / "closed.py"
    editor.edit(path, "x\n", (1, 0))
    editor.command("set filetype=lua")
    opened = [m["params"]["textDocument"] for m in messages(wire, "textDocument/didOpen")]
    assert [each["languageId"] for each in opened if each["uri"] == path.as_uri()] == ["python", "lua"]
    editor.command("bwipeout!")
    editor.until(lambda: replayed(wire, path.as_uri()) is None, "closed")


@pytest.mark.parametrize("option", ["buftype=nofile", "binary"])
def test_what_is_no_file_of_text_stays_here(editor: Vim, wire: Path, tmp_path: Path, option: str) -> None:
    editor.normal()
    path = tmp_path / "none.py"
    editor.edit(path, "x\n", (1, 0))
    editor.until(lambda: replayed(wire, path.as_uri()) == "x\n", "open")
    editor.command(f"setlocal {option} | doautocmd BufEnter")
    editor.until(lambda: replayed(wire, path.as_uri()) is None, "closed")


def test_what_is_not_printed_is_shown_as_in_a_text(editor: Vim, service: FfmService, tmp_path: Path) -> None:
    editor.normal()
    script(service, "'a\fb\u200b'")
    editor.edit(tmp_path / "printed.py", "x =\n", (1, 0))
    editor.insert(" ")
    editor.shows("'a^Lb<200b>'")
    editor.type("\t")
    editor.becomes("x = 'a\fb\u200b'")


def test_nothing_where_the_text_may_not_be_changed(editor: Vim, service: FfmService, tmp_path: Path) -> None:
    editor.normal()
    script(service, "a + b", hold_after=1)
    editor.edit(tmp_path / "locked.py", "x =\n", (1, 0))
    editor.insert(" ")
    until(service, generating=1)
    editor.command("setlocal nomodifiable")
    service.release()
    editor.until(lambda: editor.eval("midfill#Statusline()") == "midfill", "the answer")
    editor.shows("")
    editor.command("setlocal modifiable")


def test_the_recorded_capabilities(editor: Vim, wire: Path) -> None:
    """tests/clients holds what this plugin sends."""
    (message,) = messages(wire, "initialize")
    recorded = json.loads((CLIENTS / "vim-9.0.json").read_text(encoding="utf-8"))
    assert general(message["params"]) == general(recorded)


def general(params: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from machine to machine."""
    result = {**params, "processId": None, "rootUri": "", "workspaceFolders": []}
    return {**result, "clientInfo": {**params["clientInfo"], "version": ""}}
