"""How the server ends, and that nothing but JSON-RPC reaches its stdout."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, Editor, script, until
from tests.lsp_client import LspClient, LspError, client_params, start, stdio_server, write
from tests.services.ffm import FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
TEXT = "x = 1\ny = \n"
AT = (1, 4)


def test_exit_without_shutdown_is_an_error(editor: Editor) -> None:
    client = editor()
    client.notify("exit")
    assert client.wait() == 1
    client.check()


def test_exit_before_initialize() -> None:
    with stdio_server() as client:
        with pytest.raises(LspError) as raised:
            client.call("textDocument/inlineCompletion", {})
        assert raised.value.code == -32002
        client.notify("textDocument/didOpen", {})
        client.notify("exit")
        assert client.wait() == 1
        client.check()


def test_shutdown_answers_what_is_pending_and_refuses_the_rest(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = editor()
    client.open(URI, TEXT)
    pending = client.ask(URI, AT)
    until(ffm, generating=1)
    assert client.call("shutdown") is None
    with pytest.raises(LspError) as raised:
        client.result(pending)
    assert raised.value.code == -32800
    with pytest.raises(LspError) as raised:
        client.items(URI, AT)
    assert raised.value.code == -32600
    until(ffm, disconnected=1)
    client.notify("exit")
    assert client.wait() == 0
    client.check()


def test_the_end_of_stdin_ends_the_server_in_the_middle_of_a_request(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = editor()
    client.open(URI, TEXT)
    client.ask(URI, AT)
    until(ffm, generating=1)
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.wait() == 1
    until(ffm, disconnected=1)


def test_disconnecting_ends_a_server_over_tcp(editor: Editor, ffm: FfmService) -> None:
    client = editor(tcp=True)
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    client.shut_down()
    script(ffm, "call(1)", hold_after=1)
    client = editor(tcp=True)
    client.open(URI, TEXT)
    client.ask(URI, (0, 5))
    until(ffm, generating=1)
    client.disconnect()
    assert client.wait() == 1
    until(ffm, disconnected=1)


def test_tcp_takes_one_client_and_warns_when_others_can_reach_it(editor: Editor) -> None:
    client = editor(tcp=True)
    port = int(client.listening.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as second:
        assert second.recv(1) == b""
    assert client.command("midfill.toggle") == {"enabled": False}
    client.shut_down()
    assert "other machines" not in client.stderr
    process = start("--tcp", "0.0.0.0:0")
    try:
        assert process.stderr is not None
        assert b"0.0.0.0:" in process.stderr.readline()
        assert b"other machines can connect" in process.stderr.readline()
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_server_ends_with_the_editor_though_stdin_stays_open(
    config: Path, ffm: FfmService, parent: subprocess.Popen[bytes]
) -> None:
    script(ffm, "call(1)", hold_after=1)
    with stdio_server("--config", str(config), environ={KEY_ENV: KEY}) as client:
        client.call("initialize", {**client_params("vim-9.0"), "processId": parent.pid})
        client.notify("initialized", {})
        client.open(URI, TEXT)
        client.ask(URI, AT)
        until(ffm, generating=1)
        parent.kill()
        assert client.wait() == 1
        until(ffm, disconnected=1)


def test_an_editor_that_cannot_be_seen_from_here_is_not_watched(editor: Editor) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with stdio_server() as client:
        client.call("initialize", {**client_params("minimal-utf8"), "processId": gone.pid})
        assert client.call("workspace/executeCommand", {"command": "midfill.toggle"}) == {"enabled": False}
        client.shut_down()


def test_an_editor_that_does_not_read_stderr_is_answered(config: Path, ffm: FfmService) -> None:
    process = start("--config", str(config), "--verbose", environ={KEY_ENV: KEY})
    unread, process.stderr = process.stderr, None  # the client reads what the process has
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    client = LspClient(process, lambda: os.read(stdout.fileno(), 1 << 16), lambda data: write(stdin, data))
    try:
        client.initialize(client_params("vim-9.0"))
        for number in range(3000):  # a pipe holds 64 KiB
            client.notify("$/nobodyKnowsThis", {"number": number})
        client.open(URI, TEXT)
        assert len(client.items(URI, AT)) == 1
        client.shut_down()
        assert unread is not None
        assert unread.read().count(b"nobodyKnowsThis") > 100
    finally:
        client.kill()
        if unread is not None:
            unread.close()


def test_stderr_holds_warnings_only_and_the_log_file_more(editor: Editor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for arguments in ((), ("--log-file", str(log))):
        client = editor("vim-9.0", *arguments)
        for version in range(3):
            client.change("file:///not/open.py", version, (0, 0), "x")
        client.shut_down()
        assert client.stderr == ""
    assert log.read_text(encoding="utf-8").count("not open") == 1


@pytest.mark.parametrize("pid", [2**40, -1, True, "1", 1.5, [], None])
def test_a_process_id_that_is_none_is_not_watched(pid: object) -> None:
    with stdio_server() as client:
        client.call("initialize", {**client_params("minimal-utf8"), "processId": pid})
        client.shut_down()
        assert client.stderr == ""


NOISE = """
    import os, subprocess, sys, threading, time

    def noise():
        while not os.path.sameopenfile(1, 2):
            time.sleep(0.001)
        while True:
            os.write(1, b"NOISE\\n")
            print("NOISE", flush=True)
            subprocess.run([sys.executable, "-S", "-c", "print('NOISE OF A CHILD')"])

    threading.Thread(target=noise, daemon=True).start()
    from lsp_server.__main__ import main
    sys.exit(main())
"""


def test_only_json_rpc_reaches_stdout(config: Path, ffm: FfmService) -> None:
    """Whatever writes to descriptor 1, in the process or in a child, writes to stderr."""
    script(ffm, *(str(number) for number in range(30)))
    command = (sys.executable, "-c", textwrap.dedent(NOISE), "serve", "--config", str(config))
    with stdio_server(environ={KEY_ENV: KEY}, command=command) as client:
        client.initialize(client_params("vim-9.0"))
        client.open(URI, TEXT)
        client.wait_until(lambda: client.stderr.count("NOISE OF A CHILD") >= 2)
        for key in range(30):
            client.change(URI, key + 2, (0, 0), "#")
            client.items(URI, AT)
        client.shut_down()
