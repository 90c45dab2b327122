"""Keys: found where the settings say, and nowhere to be seen. Commands are real processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from backends import keys
from backends.base import BackendError, ErrorKind
from backends.keys import Key, KeySource, resolve_key
from backends.settings import BackendSettings

CANARY = "canary-7f3a9c"
NAME = "MIDFILL_TEST_KEY"


def command(code: str, *arguments: str) -> BackendSettings:
    return BackendSettings(kind="ffm", key_command=(sys.executable, "-c", code, *arguments))


def by_environment(**more: Any) -> BackendSettings:
    return BackendSettings(kind="ffm", key_env=NAME, **more)


def refusal(settings: BackendSettings) -> str:
    with pytest.raises(BackendError) as caught:
        resolve_key(settings)
    assert caught.value.kind is ErrorKind.SETTINGS
    shown = "".join(traceback.format_exception(caught.value))
    assert CANARY not in shown
    return caught.value.message


def test_no_source_no_key() -> None:
    assert resolve_key(BackendSettings(kind="ffm")) is None


def test_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, CANARY + "\n")
    assert resolve_key(by_environment()) == Key(CANARY, f"environment variable {NAME}")


def test_a_key_shows_itself_nowhere() -> None:
    key = Key(CANARY, "somewhere")
    for text in (repr(key), str(key), f"{key}", f"{[key]}", f"{key!r:>80}"):
        assert CANARY not in text
        assert "somewhere" in text


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_unset_variable_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if value is not None:
        monkeypatch.setenv(NAME, value)
    assert f"{NAME} is not set" in refusal(by_environment())


@pytest.mark.parametrize("bad", [f"{CANARY} b", f"{CANARY}\rb", f"{CANARY}\x00", f"{CANARY}é"])
def test_a_key_that_fits_no_header_is_refused_without_being_told(bad: str) -> None:
    message = refusal(command(f"import sys; sys.stdout.buffer.write({bad!r}.encode())"))
    assert "characters no key has" in message


@pytest.mark.parametrize("lines", [2, 5])
def test_a_command_that_prints_more_than_the_key_is_told_so(lines: int) -> None:
    message = refusal(command(f"print('{CANARY}\\n' * {lines})"))
    assert message.endswith(f"must print the key alone; it printed {lines} lines.")


def test_a_command_that_prints_without_end_is_ended() -> None:
    message = refusal(command(f"while True: print({CANARY!r})"))
    assert message.endswith("must print the key alone; it printed far more.")


def test_whoever_a_command_leaves_running_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COMMAND_TIMEOUT_S", 5.0)
    inner = "import time; time.sleep(10)"  # with its output open, as agents of keys do
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {inner!r}]); print({CANARY!r})"
    key = resolve_key(command(code))
    assert key
    assert key.value == CANARY


@pytest.mark.parametrize(("later", "runs"), [(25.0, "x"), (35.0, "xx")])
async def test_the_pause_begins_when_the_command_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: float, runs: str
) -> None:
    settings, marks = counting(tmp_path, "raise SystemExit(1)")
    source, loop = KeySource(settings), asyncio.get_running_loop()
    clock, passed = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)
    first = asyncio.create_task(source.get())
    await asyncio.sleep(0)
    passed = 60.0  # while it runs
    assert isinstance((await asyncio.gather(first, return_exceptions=True))[0], BackendError)
    passed += later
    with pytest.raises(BackendError):
        await source.get()
    assert marks.read_text() == runs


def test_from_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_key(command(f"print({CANARY!r})")) == Key(CANARY, f"key_command {Path(sys.executable).name!r}")
    monkeypatch.delenv(NAME, raising=False)
    both = by_environment(key_command=command(f"print({CANARY!r})").key_command)
    assert resolve_key(both) == resolve_key(command(f"print({CANARY!r})"))
    monkeypatch.setenv(NAME, "other")
    assert resolve_key(both) == Key("other", f"environment variable {NAME}")


def test_a_command_runs_without_a_shell() -> None:
    key = resolve_key(command("import sys; print(sys.argv[1])", "$HOME;echo"))
    assert key
    assert key.value == "$HOME;echo"


def test_a_command_does_not_read_our_stdin() -> None:
    inner = (sys.executable, "-c", "import sys; print(f'read{len(sys.stdin.read())}')")
    code = (
        "from backends.keys import resolve_key; from backends.settings import BackendSettings;"
        f"print(resolve_key(BackendSettings(kind='ffm', key_command={inner!r})).value)"
    )
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], input="Content-Length: 2", cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "read0"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (f"import sys; sys.stderr.write({CANARY!r}); print({CANARY!r}); sys.exit(3)", "failed with exit code 3"),
        ("pass", "gave an empty API key"),
    ],
)
def test_a_command_that_fails_is_named_and_its_output_is_not(
    code: str, says: str, capfd: pytest.CaptureFixture[str]
) -> None:
    message = refusal(command(code, CANARY))
    assert says in message
    assert Path(sys.executable).name in message
    assert CANARY not in "".join(capfd.readouterr())


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    message = refusal(BackendSettings(kind="ffm", key_command=(str(tmp_path / "no-such-program"), CANARY)))
    assert "'no-such-program' cannot be run: No such file" in message


def test_a_command_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "COMMAND_TIMEOUT_S", 0.2)
    assert "did not end within 0.2 s" in refusal(command("input.__self__.__import__('time').sleep(60)"))


def counting(tmp_path: Path, body: str) -> tuple[BackendSettings, Path]:
    """A command that leaves a mark each time it runs."""
    marks = tmp_path / "marks"
    return command(f"open({str(marks)!r}, 'a').write('x'); {body}"), marks


async def test_a_command_runs_once_for_all_requests(tmp_path: Path) -> None:
    settings, marks = counting(tmp_path, f"print({CANARY!r})")
    source = KeySource(settings)
    first, second = await asyncio.gather(source.get(), source.get())
    assert first is second is await source.get()
    assert marks.read_text() == "x"


async def test_a_cancelled_request_leaves_the_key_to_the_next(tmp_path: Path) -> None:
    settings, marks = counting(tmp_path, f"print({CANARY!r})")
    source = KeySource(settings)
    cancelled = asyncio.create_task(source.get())
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert (await source.get() or Key("", "")).value == CANARY
    assert marks.read_text() == "x"


@pytest.mark.parametrize(("retry_s", "runs"), [(1e9, "x"), (-1.0, "xx")])
async def test_a_failed_command_is_not_run_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_s: float, runs: str
) -> None:
    monkeypatch.setattr(keys, "RETRY_S", retry_s)
    settings, marks = counting(tmp_path, "raise SystemExit(1)")
    source = KeySource(settings)
    for _ in range(2):
        with pytest.raises(BackendError, match="exit code 1"):
            await source.get()
    assert marks.read_text() == runs


@pytest.mark.parametrize(("retry_s", "runs"), [(1e9, "x"), (-1.0, "xx")])
async def test_a_refused_key_is_asked_for_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, retry_s: float, runs: str
) -> None:
    monkeypatch.setattr(keys, "RETRY_S", retry_s)
    settings, marks = counting(tmp_path, f"print({CANARY!r})")
    source = KeySource(settings)
    await source.get()
    source.refused()
    await source.get()
    assert marks.read_text() == runs
