"""The socket where servers meet a shared worker. One worker holds it; knows no peer and no model."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from pathlib import Path


class Meeting:
    """Only the user's own processes can connect: the folder is theirs alone, and so is the socket."""

    def __init__(self, path: Path, lock: int, listener: socket.socket) -> None:
        self.listener = listener
        self._path = path
        self._lock = lock  # held as long as the process lives, so that no second worker takes the socket away

    def end(self) -> None:
        """Whoever comes from now on starts another worker. Whoever is here stays connected."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        self.listener.close()
        os.close(self._lock)


def meet(path: Path) -> Meeting | None:
    """None if another worker is met there already. Raises OSError."""
    if sys.platform == "win32":
        raise OSError("no sockets in the file system here")
    import fcntl

    os.umask(0o077)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    path.unlink(missing_ok=True)  # of one that was killed
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(16)
    return Meeting(path, lock, listener)
