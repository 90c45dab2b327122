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
    """Return the real stdout, unbuffered; from now on whatever else writes to descriptor 1 writes to stderr."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed or missing
        sys.stdout.flush()
    taken = _move(STDOUT)
    try:
        os.dup2(STDERR, STDOUT)
    except OSError:  # stderr is closed
        _point_at_nothing(STDOUT, os.O_WRONLY)
    return open(taken, "wb", buffering=0)  # noqa: SIM115 - lives as long as the process


def take_stdin() -> BinaryIO:
    """Return the real stdin, unbuffered; from now on descriptor 0 is at its end, for children too."""
    taken = _move(STDIN)
    _point_at_nothing(STDIN, os.O_RDONLY)
    return open(taken, "rb", buffering=0)  # noqa: SIM115 - lives as long as the process


def _move(descriptor: int) -> int:
    """A copy that children do not inherit. Raises OSError if the descriptor is closed."""
    copy = os.dup(descriptor)
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(copy, os.O_BINARY)
    return copy


def _point_at_nothing(descriptor: int, flags: int) -> None:
    nothing = os.open(os.devnull, flags)
    try:
        os.dup2(nothing, descriptor)
    finally:
        if nothing != descriptor:
            os.close(nothing)
