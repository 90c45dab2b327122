"""Runs programs that a model wrote, each in a process of its own with limits. Knows nothing of tasks.

This is no sandbox: a program has the rights of the user who runs the bench. It runs in Python's isolated mode, in a
temporary folder that goes with it, without the environment, without input, and with limits of time everywhere, and of
memory, files and processes where the system has them (`resource`). That stops what is wrong by accident, not what means
harm.
"""

from __future__ import annotations

import contextlib
import enum
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

CPU_S = 3  # a program's processor time, where it can be limited; the tasks take milliseconds
WALL_S = 10.0  # its time by the clock; more, as other processes want the processor too
MEMORY = 1 << 30  # bytes of address space
FILE_BYTES = 1 << 20  # of the largest file it can write

# Ends with a word that only this run knows: neither exit() nor os._exit(0) in an answer passes for success. The limits
# are set here and not before exec: code between fork and exec is unsafe beside threads.
_RUN = """
import sys
path, word, cpu, memory, size = sys.argv[1:]
try:
    import resource
except ImportError:
    pass
else:
    for name, limit in (("CPU", cpu), ("AS", memory), ("FSIZE", size), ("CORE", 0), ("NPROC", 0)):
        try:
            number = getattr(resource, "RLIMIT_" + name)
            hard = resource.getrlimit(number)[1]
            limit = int(limit) if hard == resource.RLIM_INFINITY else min(int(limit), hard)
            # At the soft limit of processor time a process is told (SIGXCPU), at the hard one killed without a word.
            resource.setrlimit(number, (limit, hard if name == "CPU" else limit))
        except (AttributeError, ValueError, OSError):
            pass
say = sys.stdout.write
with open(path, encoding="utf-8") as file:
    code = compile(file.read(), "answer.py", "exec")
sys.argv = ["answer.py"]
exec(code, {"__name__": "__main__"})
say(word)
"""


class Verdict(enum.StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed-out"


def run(program: str, *, wall_s: float = WALL_S, cpu_s: int = CPU_S, memory: int = MEMORY) -> Verdict:
    """Whether `program` runs to its end without an exception."""
    word = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "answer.py"
        path.write_text(program, encoding="utf-8", errors="replace")
        command = [sys.executable, "-I", "-B", "-c", _RUN, str(path), word, str(cpu_s), str(memory), str(FILE_BYTES)]
        with open(Path(folder) / "output", "w+b") as output:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
            try:
                process.wait(wall_s)
            except subprocess.TimeoutExpired:
                return Verdict.TIMED_OUT
            finally:
                _end(process)
            output.seek(max(0, output.seek(0, os.SEEK_END) - len(word)))
            if process.returncode == 0 and output.read() == word.encode():
                return Verdict.PASSED
    return Verdict.TIMED_OUT if process.returncode == -getattr(signal, "SIGXCPU", 0) != 0 else Verdict.FAILED


def _environment() -> dict[str, str]:
    """Nothing of the user's but what Windows cannot start a process without."""
    return {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the program, with all processes of its group."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
