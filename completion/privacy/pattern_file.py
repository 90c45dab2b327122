"""Reads a small file that is not trusted.

Must not know what it holds.
"""

from __future__ import annotations

import os
import stat

LIMIT = 256 * 1024  # bytes

Signature = tuple[int, int, int, int]


class Unusable(Exception):  # noqa: N818 - not an error of the program
    """The file cannot be used. The message says why, to be read behind the file's name."""


def signature(path: str) -> Signature | None:
    """What changes whenever the file does; None, if there is no such file, or a folder."""
    try:
        there = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return (0, 0, 0, 0) if os.path.islink(path) else None
    except (OSError, ValueError):
        return (0, 0, 0, 0)  # reading it says why
    if stat.S_ISDIR(there.st_mode):
        return None
    return (there.st_mtime_ns, there.st_size, there.st_ino, there.st_mode)


def read(path: str, top: str) -> str:
    """Its text. Never blocks on a pipe or a device. Raises Unusable.

    A link is followed within `top` alone.
    """
    try:
        if os.path.islink(path) and not _within(path, top):
            raise Unusable("is a link that leads out of the workspace")
        flags = os.O_RDONLY
        for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"):
            flags |= getattr(os, name, 0)
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unusable("is not a regular file")
            data = file.read(LIMIT + 1)
    except (OSError, ValueError) as error:
        raise Unusable(f"cannot be read: {getattr(error, 'strerror', None) or 'no file can have this name'}") from None
    if len(data) > LIMIT:
        raise Unusable(f"is larger than {LIMIT // 1024} kB")
    return data.decode("utf-8-sig", "surrogateescape")


def _within(path: str, top: str) -> bool:
    whole, top = os.path.realpath(path), os.path.realpath(top)
    return whole.startswith(top.rstrip(os.sep) + os.sep)
