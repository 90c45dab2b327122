"""The embedded model behind the server: progress while it loads, its death, and that it dies with the server."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.e2e.conftest import Editor
from tests.llama_child import needs_llama
from tests.lsp_client import LspClient, LspError

pytestmark = [pytest.mark.e2e, pytest.mark.model, needs_llama]

URI = "file:///home/user/project/app.py"
TEXT = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return \n"
AT = (5, 11)
SETTINGS = """
backend = "local"
[backends.local]
kind = "llama-cpp"
timeout_s = 100  # the machine may be busy
[completion]
max_tokens = 8
prompt_tokens = 500
multiline = "never"
max_candidates = 1
speculate = "never"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(SETTINGS, encoding="utf-8")
    return path


def worker(client: LspClient) -> psutil.Process:
    (found,) = psutil.Process(client.process.pid).children()
    return found


def test_progress_and_a_suggestion(editor: Editor) -> None:
    client = editor("vscode-1.139")
    begin = client.notification("$/progress")
    assert (begin["value"]["kind"], begin["value"]["title"][:16]) == ("begin", "midfill: Loading")
    while (value := client.notification("$/progress"))["value"]["kind"] == "report":
        assert 0 <= value["value"]["percentage"] <= 100
    assert (value["token"], value["value"]["kind"]) == (begin["token"], "end")
    client.open(URI, TEXT)
    (item,) = client.items(URI, AT)
    assert item["insertText"].startswith("a - b")
    assert client.command("midfill.status")["kind"] == "llama-cpp"
    child = worker(client)
    client.shut_down()
    child.wait(60)


def test_a_killed_worker_costs_one_answer(editor: Editor) -> None:
    client = editor("minimal-utf8")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    child = worker(client)
    client.change(URI, 2, (0, 0), "numbers = [1, 2, 3,\n")
    client.items(URI, (0, 19))  # from now on nothing is evaluated ahead, and
    record = client.command("midfill.explain", URI)[0]
    assert record["generated_tokens"] == 8, "the model was not stopped: it has ended, and can be asked at once"
    child.suspend()
    pending = client.ask(URI, (2, 11))
    for _ in range(20):  # turns of the event loop: the question has long been put to the worker
        client.command("midfill.status")
    child.kill()
    assert client.result(pending) == {"items": []}
    assert "SIGKILL" in client.notification("window/showMessage")["message"]
    client.change(URI, 3, (0, 0), "import re\n")
    assert len(client.items(URI, (7, 11))) == 1
    assert worker(client).pid != child.pid
    assert client.reasons() == {"backend-error": 1, "shown": 3}
    client.shut_down()


def test_the_worker_ends_with_a_server_that_is_killed_while_it_evaluates(editor: Editor) -> None:
    client = editor("minimal-utf8")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    child = worker(client)
    client.change(URI, 2, (0, 0), "import os\n" * 100)
    client.ask(URI, (105, 11))
    client.process.kill()
    client.wait()
    child.wait(30)


def test_the_end_of_stdin_ends_server_and_worker(editor: Editor) -> None:
    client = editor("minimal-utf8")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    child = worker(client)
    client.change(URI, 2, (0, 0), "import os\n" * 100)
    client.ask(URI, (105, 11))
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.wait() == 1
    child.wait(60)


def test_cancel_while_the_prompt_is_evaluated(editor: Editor) -> None:
    client = editor("minimal-utf8")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    client.change(URI, 2, (0, 0), "import os\n" * 100)
    pending = client.ask(URI, (105, 11))
    client.cancel(pending)
    with pytest.raises(LspError) as raised:
        client.result(pending)
    assert raised.value.code == -32800
    assert len(client.items(URI, (105, 11))) == 1
    assert client.reasons() == {"cancelled": 1, "shown": 2}
    client.shut_down()
