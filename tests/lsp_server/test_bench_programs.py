"""Programs a model wrote: which pass, and that none can stay, hang or grow."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from lsp_server.bench.programs import Verdict, run

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and files as Linux has them")


@pytest.mark.parametrize(
    "program",
    [
        "",
        "print('much', 'output')",
        "x = 'ä€🙂'\nassert len(x) == 3",
        "if __name__ == '__main__':\n    y = 1\nassert y",
    ],
)
def test_a_program_that_reaches_its_end_passes(program: str) -> None:
    assert run(program) is Verdict.PASSED


@pytest.mark.parametrize(
    "program",
    [
        "assert False",
        "def f(:",
        "raise SystemExit",
        "import sys; sys.exit(0)",
        "import os; os._exit(0)",
        "input()",
        "import os; os.kill(os.getpid(), 9)",
        "\udc80",
    ],
)
def test_a_program_that_does_not_reach_its_end_fails(program: str) -> None:
    assert run(program) is Verdict.FAILED


def test_a_program_that_sleeps_is_ended_by_the_clock() -> None:
    assert run("import time\ntime.sleep(60)", wall_s=0.5) is Verdict.TIMED_OUT


@needs_limits
def test_a_program_that_computes_is_ended_by_its_processor_time() -> None:
    assert run("while True: pass", wall_s=60, cpu_s=1) is Verdict.TIMED_OUT


@needs_limits
def test_a_program_gets_no_more_memory_than_it_may_have() -> None:
    program = "x = bytearray(300 << 20)"
    assert run(program) is Verdict.PASSED
    assert run(program, memory=200 << 20) is Verdict.FAILED


@needs_limits
def test_a_program_cannot_fill_the_disk() -> None:
    assert run("open('f', 'wb').write(b'x' * 1000)") is Verdict.PASSED
    assert run("open('f', 'wb').write(b'x' * (2 << 20))") is Verdict.FAILED


def test_a_program_starts_in_an_empty_folder_without_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "1")
    seen = "import os\nassert sorted(os.listdir()) == ['answer.py', 'output']\nassert 'SECRET_KEY' not in os.environ"
    assert run(seen) is Verdict.PASSED
    assert os.environ["SECRET_KEY"] == "1"


def test_a_program_cannot_import_from_the_folder_of_the_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "neighbour.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run("import neighbour") is Verdict.FAILED


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_what_a_program_started_ends_with_it(tmp_path: Path) -> None:
    """The child holds the lock of a file as long as it lives."""
    fcntl = pytest.importorskip("fcntl")
    lock = tmp_path / "lock"
    lock.touch()
    child = f"import fcntl, time; f = open({str(lock)!r}); fcntl.flock(f, 2); print(1, flush=True); time.sleep(60)"
    program = f"""
import subprocess, sys
try:
    child = subprocess.Popen([sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
except OSError:  # no more processes: as good
    pass
else:
    child.stdout.readline()
"""
    assert run(program) is Verdict.PASSED
    with lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
