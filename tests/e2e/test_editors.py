"""Every editor gets a suggestion in its own units, over the method it knows, and no message it did not ask for."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.version import version
from tests.e2e.conftest import Editor, script
from tests.lsp_client import client_params
from tests.services.ffm import FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
LINE = "naïve = '\U0001f600e\u0301\U00020000'; x = "
TEXT = f"# \U0001f642\n{LINE}\n"
UNITS = {"utf-8": len(LINE.encode()), "utf-16": len(LINE.encode("utf-16-le")) // 2, "utf-32": len(LINE)}
UTF16_OR_ONLY = {  # every other one knows UTF-16
    "emacs-28-lsp-mode-8.0": "utf-32",
    "emacs-28-midfill": "utf-32",
    "minimal-utf8": "utf-8",
    "vim-9.0": "utf-32",
}


def capabilities(name: str) -> dict[str, Any]:
    found: dict[str, Any] = client_params(name)["capabilities"]
    return found


def test_what_is_offered(editor: Editor, editor_name: str) -> None:
    client = editor(editor_name)
    offered = client.initialized["capabilities"]
    assert client.initialized["serverInfo"] == {"name": "midfill", "version": version()}
    assert offered["positionEncoding"] == UTF16_OR_ONLY.get(editor_name, "utf-16")
    assert offered["textDocumentSync"]["change"] == 2
    assert offered["executeCommandProvider"]["commands"] == [
        f"midfill.{name}" for name in ("accept", "reject", "toggle", "clearCache", "status", "explain", "pullModel")
    ]
    inline = capabilities(editor_name).get("textDocument", {}).get("inlineCompletion")
    dynamic = bool(inline and inline.get("dynamicRegistration"))
    assert ("inlineCompletionProvider" in offered) is not dynamic
    assert ("completionProvider" in offered) is (inline is None)
    client.call("workspace/executeCommand", {"command": "midfill.status"})
    registered = [
        each["method"]
        for request in client.server_requests
        if request["method"] == "client/registerCapability"
        for each in request["params"]["registrations"]
    ]
    assert ("textDocument/inlineCompletion" in registered) is dynamic
    client.shut_down()


def test_inline_completion(editor: Editor, editor_name: str, ffm: FfmService) -> None:
    script(ffm, "1 + 2")
    client = editor(editor_name)
    column = UNITS[client.initialized["capabilities"]["positionEncoding"]]
    client.open(URI, TEXT)
    (item,) = client.items(URI, (1, column))
    at = {"line": 1, "character": column}
    assert item["insertText"] == "1 + 2"
    assert item["range"] == {"start": at, "end": at}
    assert item["command"]["command"] == "midfill.accept"
    assert ffm.log[0].body["inputs"] == f"{TEXT[:-1]}<FILL_ME>\n"
    client.call("workspace/executeCommand", item["command"])
    status = client.command("midfill.status")
    assert (status["accepted"], status["counts"]["shown"], status["model"]) == (1, 1, "qwen2.5-coder-7b-32k")
    client.shut_down()


@pytest.mark.parametrize("name", ["emacs-28-eglot-1.9", "helix-25.07", "neovim-0.11.4-alone", "minimal-utf8"])
def test_popup_menu_of_editors_without_inline_completion(editor: Editor, name: str, ffm: FfmService) -> None:
    script(ffm, "[\n    1,\n]")
    client = editor(name)
    column = UNITS[client.initialized["capabilities"]["positionEncoding"]]
    client.open(URI, TEXT)
    position = {"line": 1, "character": column}
    result = client.call("textDocument/completion", {"textDocument": {"uri": URI}, "position": position})
    assert result["isIncomplete"] is True
    (item,) = result["items"]
    assert item["textEdit"] == {"range": {"start": position, "end": position}, "newText": "[\n    1,\n]"}
    assert (item["label"], item["detail"], item["preselect"]) == ("[ …", "midfill", True)
    assert item["command"]["command"] == "midfill.accept"
    ended = client.call("textDocument/completion", {"textDocument": {"uri": "file:///other.py"}, "position": position})
    assert ended == {"isIncomplete": True, "items": []}
    client.shut_down()


@pytest.mark.parametrize(
    "encodings", [["utf-8"], ["utf-32", "utf-8"], ["utf-32", "utf-16"], ["utf-7"], [7], "utf-8", None]
)
def test_encoding_is_utf16_unless_the_client_does_not_know_it(editor: Editor, encodings: Any) -> None:
    client = editor("vim-9.0", capabilities={"general": {"positionEncodings": encodings}})
    expected = "utf-16"
    if isinstance(encodings, list) and encodings[0] in ("utf-8", "utf-32") and "utf-16" not in encodings:
        expected = encodings[0]
    assert client.initialized["capabilities"]["positionEncoding"] == expected
    client.shut_down()


@pytest.mark.parametrize("capabilities", [{}, {"textDocument": 7, "workspace": [], "general": "x", "window": None}])
def test_odd_capabilities_count_as_none(editor: Editor, capabilities: Any) -> None:
    client = editor("minimal-utf8", capabilities=capabilities)
    assert client.initialized["capabilities"]["inlineCompletionProvider"] == {}
    client.shut_down()


def test_crlf_document(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "x = 1\n    return x")
    client = editor()
    client.open(URI, "def f():\r\n    \r\nprint(1)\r\n")
    (item,) = client.items(URI, (1, 4))
    assert item["insertText"] == "x = 1\r\n    return x"
    assert item["range"]["start"] == item["range"]["end"] == {"line": 1, "character": 4}
    assert "\r" not in ffm.log[0].body["inputs"]
    client.shut_down()
