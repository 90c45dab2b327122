"""Keeps stdin and stdout for the protocol or the result alone. Knows nothing of what is written.

Libraries print, and children inherit descriptors. So the real ones move to numbers nobody knows, descriptor 1 becomes
stderr and descriptor 0 becomes empty.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import BinaryIO

STDIN, STDOUT, STDERR = 0, 1, 2


def take_stdout() -> BinaryIO:
    """Return the real stdout; from now on whatever else writes to descriptor 1 writes to stderr.

    Raises OSError if stdout is closed.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stdout.flush()
    taken = _move(STDOUT)
    os.dup2(STDERR, STDOUT)
    return open(taken, "wb")


def take_stdin() -> BinaryIO:
    """Return the real stdin; from now on descriptor 0 is at its end, for children too.

    Raises OSError if stdin is closed.
    """
    taken = _move(STDIN)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    return open(taken, "rb")


def _move(descriptor: int) -> int:
    """A copy that children do not inherit, and that does not change line ends on Windows."""
    os.fstat(descriptor)  # raises if it is closed
    while (filler := os.open(os.devnull, os.O_RDWR)) <= STDERR:  # a closed stderr's number must not become the copy's
        os.set_inheritable(filler, True)
    os.close(filler)
    copy = os.dup(descriptor)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)
    return copy
