"""Watches the process that started the server, so that the server never outlives its editor. Knows nothing of LSP."""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections.abc import Callable

_LARGEST = 2**31 - 1  # process id; the systems' calls take no larger one
_POLL_S = 2.0  # between two looks where the system cannot tell


def watch(pid: int, died: Callable[[], None]) -> bool:
    """Call `died` from a daemon thread when the process ends.

    False if there is no such process now: it lives in another container or on another machine, and only the end of
    stdin will tell.
    """
    wait = _waiter(pid) if 0 < pid <= _LARGEST else None  # 0 and below are groups of processes
    if wait is None:
        return False

    def run() -> None:
        wait()
        died()

    threading.Thread(target=run, name="midfill-parent", daemon=True).start()
    return True


def end_within(seconds: float, code: int) -> None:
    """End the process with `code` after `seconds`, whatever still runs then."""

    def run() -> None:
        time.sleep(seconds)
        os._exit(code)

    threading.Thread(target=run, name="midfill-end", daemon=True).start()


if sys.platform == "win32":

    def _waiter(pid: int) -> Callable[[], object] | None:
        # os.kill(pid, 0) would end the process here
        import ctypes

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        synchronize, infinite = 0x00100000, 0xFFFFFFFF
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(synchronize, False, pid)
        if not handle:
            return None
        return lambda: kernel.WaitForSingleObject(ctypes.c_void_p(handle), infinite)

else:

    def _waiter(pid: int) -> Callable[[], object] | None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):  # no such process, or a kernel before 5.3
                descriptor = os.pidfd_open(pid)
                return lambda: select.select([descriptor], [], [])
        if not _alive(pid):
            return None
        parent = os.getppid()

        def wait() -> None:
            # A dead parent may stay a zombie that can be signalled; its children get another parent.
            while _alive(pid) and (pid != parent or os.getppid() == parent):
                time.sleep(_POLL_S)

        return wait

    def _alive(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # not ours, but there
            return True
        return True
