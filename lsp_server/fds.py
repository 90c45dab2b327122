"""Keeps stdin and stdout for the protocol or the result alone. Knows nothing of what is written.

Libraries print, and children inherit descriptors. So the real ones move to numbers nobody knows, descriptor 1 becomes
stderr and descriptor 0 becomes empty.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import BinaryIO

STDIN, STDOUT, STDERR = 0, 1, 2


class OutputError(OSError):
    """The result could not be written."""


def take_stdout() -> BinaryIO:
    """Return the real stdout; from now on whatever else writes to descriptor 1 writes to stderr.

    Raises OutputError if stdout is closed.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or none at all
        sys.stdout.flush()
    if sys.__stdout__ is None:  # closed from the start: its number may be another file's by now
        raise OutputError(errno.EBADF, os.strerror(errno.EBADF))
    try:
        taken = _move(STDOUT)
        os.dup2(STDERR, STDOUT)
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from None
    return open(taken, "wb", buffering=0)


def say(text: str) -> None:
    """Write to stderr, if anybody can hear it. Never raises."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        _silence(STDERR)


def show(text: str) -> None:
    """Write to stdout. Raises OutputError, BrokenPipeError."""
    if sys.stdout is None:
        raise OutputError(errno.EBADF, os.strerror(errno.EBADF))
    _print(text)


def flush() -> None:
    """Write out what was printed, before the interpreter does: it would end with a trace of its own.

    Raises OutputError, BrokenPipeError.
    """
    say("")
    if sys.stdout is not None:
        _print("")


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(STDOUT)
        raise
    except OSError as error:
        _silence(STDOUT)
        raise OutputError(error.errno, error.strerror) from None


def _silence(descriptor: int) -> None:
    """What is still buffered goes nowhere."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


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
