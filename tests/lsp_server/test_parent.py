"""The end of the editor's process is noticed; a process that cannot be seen is not waited for."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from lsp_server import parent


@pytest.fixture
def editor() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_end_is_noticed_and_no_earlier(editor: subprocess.Popen[bytes]) -> None:
    died = threading.Event()
    assert parent.watch(editor.pid, died.set)
    assert not died.is_set()
    editor.kill()
    assert died.wait(60)


def test_process_that_is_not_there(editor: subprocess.Popen[bytes]) -> None:
    editor.kill()
    editor.wait()
    assert not parent.watch(editor.pid, lambda: None)


@pytest.mark.parametrize("pid", [0, -1, -(2**40), 2**31, 2**40, 2**70])
def test_what_is_no_process_id_is_not_watched(pid: int) -> None:
    assert not parent.watch(pid, lambda: None)


def test_end_within_ends_a_process_that_is_stuck() -> None:
    code = "import threading; from lsp_server import parent; parent.end_within(0.01, 7); threading.Event().wait()"
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 7


@pytest.mark.skipif(sys.platform == "win32", reason="Windows waits for a handle")
def test_systems_without_pidfd_look_again_and_again(
    editor: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(pid: int) -> int:
        raise OSError

    monkeypatch.setattr("os.pidfd_open", unsupported, raising=False)
    monkeypatch.setattr(parent, "_POLL_S", 0.001)
    died = threading.Event()
    assert parent.watch(editor.pid, died.set)
    editor.kill()
    editor.wait()  # a zombie could still be signalled
    assert died.wait(60)
