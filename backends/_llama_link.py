"""The way to a worker that the servers of one user share: a local socket. Knows no model and no prompt.

Who finds no worker behind the socket starts one; of two started at once, the second one ends. A worker belongs to
nobody: it ends by itself soon after the last server has left.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

_log = logging.getLogger(__name__)

START_S = 20.0  # seconds a worker may take until it can be reached
_PAUSE_S = 0.02  # seconds between two looks whether it can
_PATH_BYTES = 100  # the system takes 104 or 108 in the name of a socket
_LOG_BYTES = 1 << 12  # of the worker's stderr that are looked at for its last words


class Place:
    """Where one worker is met: a socket, a lock and the log of its stderr in a folder that is the user's alone."""

    def __init__(self, folder: Path, key: str) -> None:
        self.socket = folder / f"{key}.sock"
        self.log = folder / f"{key}.log"

    def last_words(self) -> list[str]:
        """The last lines the worker wrote to stderr; it writes no source text there."""
        with contextlib.suppress(OSError), self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _LOG_BYTES))
            return [line for line in log.read().decode("utf-8", "replace").split("\n") if line.strip()]
        return []


@dataclass(frozen=True, slots=True)
class Connection:
    """`process` is there if this connection had it started; it may still be another one's that was met."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    process: subprocess.Popen[bytes] | None = None


def place(parts: Sequence[object], folder: Path | None = None) -> Place | None:
    """The place of the worker that `parts` describe; None where workers cannot be shared.

    That is on Windows, and where no folder can be had that nobody else can enter.
    """
    if sys.platform == "win32":
        return None
    own = (sys.executable, *_code(), *parts)
    key = hashlib.sha256("\0".join(map(str, own)).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    try:
        with warnings.catch_warnings(action="ignore"):  # an unsafe folder is not used
            folder = folder or platformdirs.user_runtime_path("midfill")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, above = folder.lstat(), folder.parent.stat()
    except OSError:
        return None
    found = Place(folder, key)
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    # Whoever may write to the folder above could put another one in its place.
    steady = above.st_uid in (0, os.getuid()) and (not above.st_mode & 0o022 or bool(above.st_mode & stat.S_ISVTX))
    return found if private and steady and len(os.fsencode(found.socket)) <= _PATH_BYTES else None


def _code() -> list[object]:
    """Other code speaks another protocol."""
    files = sorted((Path(__file__).resolve().parent / "llama_worker").glob("*.py"))
    return [part for file in files for part in (file, file.stat().st_mtime_ns)]


async def connect(
    where: Place,
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    limit: int,
    check: Callable[[], None],
) -> Connection | None:
    """Connect to the worker; None if none can be met there. `limit`: bytes of its longest line.

    If there is none it is started, after `check`, which may raise.
    """
    with contextlib.suppress(OSError):
        return Connection(*await asyncio.open_unix_connection(where.socket, limit=limit))
    check()
    process = _start(where, [*command, str(where.socket)], environment, folder)
    if process is None:
        return None
    deadline = asyncio.get_running_loop().time() + START_S
    while asyncio.get_running_loop().time() < deadline:
        ended = process.poll() is not None
        with contextlib.suppress(OSError):
            return Connection(*await asyncio.open_unix_connection(where.socket, limit=limit), process)
        if ended and process.returncode != 0:
            break
        await asyncio.sleep(_PAUSE_S)
    _log.info("no local model can be shared at %s; %s", where.socket, "; ".join(where.last_words()[-1:]))
    return None


def _start(
    where: Place, command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> subprocess.Popen[bytes] | None:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC | os.O_NOFOLLOW
        log = os.open(where.log, flags, 0o600)
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=folder,
                env=environment,
                start_new_session=True,  # Ctrl-C in one server's terminal is not for the others
            )
        finally:
            os.close(log)
    except OSError as error:
        _log.info("no local model can be shared at %s: %s", where.socket, error.strerror)
        return None
    threading.Thread(target=process.wait, name="midfill-worker", daemon=True).start()  # no zombie is left
    return process
