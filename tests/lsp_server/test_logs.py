from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lsp_server import logs

ROOT = Path(__file__).resolve().parent.parent.parent
SECRET_TEXT = "def secret_source(): pass\n" * 20


def written(file: Path) -> str:
    """The log, once every line is in it."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    return file.read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    known = dict(logging.Logger.manager.loggerDict)
    levels = {name: logger.level for name, logger in known.items() if isinstance(logger, logging.Logger)}
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.raiseExceptions = raising
    for name, logger in logging.Logger.manager.loggerDict.items():
        if isinstance(logger, logging.Logger):
            logger.setLevel(levels.get(name, logging.NOTSET))


def test_file_gets_time_and_level_and_is_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("before\n")
    logs.setup(file)
    logging.getLogger("lsp_server.x").info("Grüße %d", 5)
    logging.getLogger("lsp_server.x").debug("source text")
    lines = written(file).split("\n")
    assert lines[0] == "before"
    assert lines[1].endswith("INFO lsp_server.x: Grüße 5")
    assert lines[1][:2] == "20"
    assert lines[2:] == [""]


def test_verbose_logs_debug_but_not_of_libraries(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.setup(file, verbose=True)
    logging.getLogger("completion.engine").debug("ours")
    for name in ("pygls.protocol.json_rpc", "httpx", "httpcore.http11", "asyncio"):
        logging.getLogger(name).info("theirs")
    text = written(file)
    assert "ours" in text
    assert "theirs" not in text


def test_warnings_of_libraries_lose_the_messages_they_quote(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.setup(file)
    logger = logging.getLogger("pygls.protocol.json_rpc")
    logger.error("Failed to handle notification %r: %s", "textDocument/didChange", {"text": SECRET_TEXT})
    logger.error("Failed to read\n%s", SECRET_TEXT)
    logger.warning("Cancel notification for unknown message id %s", 7)
    text = written(file)
    assert "secret_source" not in text
    assert "'textDocument/didChange': <dict>" in text
    assert f"<str of {len(SECRET_TEXT)} characters>" in text
    assert "unknown message id 7" in text


def test_our_own_long_arguments_stay_whole(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.setup(file)
    logging.getLogger("lsp_server.client").warning("%s", "m" * 500)
    assert "m" * 500 in written(file)


def test_a_second_setup_replaces_the_first(tmp_path: Path) -> None:
    for name in ("a", "b"):
        logs.setup(tmp_path / name)
    logging.getLogger("x").info("once")
    assert (tmp_path / "a").read_text() == ""
    assert written(tmp_path / "b").count("once") == 1


def test_a_file_that_cannot_be_opened_raises(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        logs.setup(tmp_path / "no" / "log")


def test_control_characters_are_not_written(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.setup(file)
    logging.getLogger("x").warning("red \x1b[31m bell \a\x9b0m\ttab \ud800 \u202eright")
    text = written(file)
    assert text.endswith("red \ufffd[31m bell \ufffd\ufffd0m\ttab \ufffd \ufffdright\n")


@pytest.mark.parametrize("blocking", [True, False])
def test_logging_does_not_wait_for_a_reader_and_counts_what_it_drops(blocking: bool) -> None:
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    handler = logs.DescriptorHandler(write, most_waiting=100_000)
    record = logging.LogRecord("x", logging.INFO, "", 0, "m" * 999, None, None)
    for _ in range(1000):  # a pipe holds 64 lines, the queue 100
        handler.emit(record)
    received = b""
    while b"dropped" not in received or not received.endswith(b"\n"):
        received += os.read(read, 1 << 16)
    *lines, note, rest = received.split(b"\n")
    assert rest == b""
    assert set(lines) == {b"m" * 999}
    assert note == b"%d lines of the log were dropped here: nobody read them" % (1000 - len(lines))
    assert 100 <= len(lines) < 1000
    handler.emit(record)
    handler.close()
    assert os.read(read, 1 << 16) == b"m" * 999 + b"\n"
    os.close(read)
    os.close(write)


def test_logging_to_a_closed_pipe_is_silent() -> None:
    read, write = os.pipe()
    os.close(read)
    handler = logs.DescriptorHandler(write)
    record = logging.LogRecord("x", logging.INFO, "", 0, "text", None, None)
    for _ in range(3):
        handler.emit(record)
        handler.flush()
    handler.close()
    os.close(write)


TAKE = """
import os, subprocess, sys
from lsp_server import fds
out = fds.take_stdout()
stdin = fds.take_stdin()
print("printed")
sys.stdout.flush()
os.write(1, b"native\\n")
subprocess.run([sys.executable, "-c", "import sys; print('child', repr(sys.stdin.read()))"], check=True)
out.write(stdin.read() + b"\\r\\n")
out.flush()
"""


def test_only_what_is_meant_for_stdout_gets_there() -> None:
    done = subprocess.run([sys.executable, "-c", TAKE], cwd=ROOT, input=b"in\n", capture_output=True, check=True)
    assert done.stdout == b"in\n\r\n"
    assert done.stderr.replace(b"\r", b"").split(b"\n")[-4:] == [b"printed", b"native", b"child ''", b""]


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes stderr")
def test_stdout_is_protected_when_stderr_is_closed() -> None:
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, TAKE]
    done = subprocess.run(command, cwd=ROOT, input=b"in\n", capture_output=True, check=True)
    assert done.stdout == b"in\n\r\n"
