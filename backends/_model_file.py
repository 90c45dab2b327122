"""Checks of a local model's file and of this machine, before a process is started. Knows no llama.cpp."""

from __future__ import annotations

import os
from pathlib import Path

from backends.base import BackendError, ErrorKind
from backends.embedded import DISTRIBUTION, INSTALL, embedded_model

MAGIC = b"GGUF"


def model_file(model_path: str) -> Path:
    """The absolute path of a file that looks like a model; with an empty `model_path` the embedded one.

    Raises BackendError: SETTINGS, BAD_MODEL.
    """
    if not model_path:
        embedded = embedded_model()
        if embedded is None:
            raise BackendError(
                ErrorKind.SETTINGS,
                f"No model_path is set and the embedded model ({DISTRIBUTION}) is missing. {INSTALL}",
            )
        return embedded
    path = Path(model_path).expanduser().absolute()
    if not path.is_file():
        raise BackendError(ErrorKind.SETTINGS, f"There is no model file {model_path}.")
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise BackendError(ErrorKind.BAD_MODEL, f"{model_path} cannot be read: {error.strerror}.") from error
    if magic != MAGIC:
        raise BackendError(ErrorKind.BAD_MODEL, f"{model_path} is not a GGUF file.")
    return path


def check_memory(path: Path, shown: str) -> None:
    """Refuse a model that is larger than the memory that is free: loading it would have the system kill processes.

    Raises BackendError(BAD_MODEL). Without psutil nothing is checked.
    """
    try:
        import psutil
    except ImportError:
        return
    size, free = path.stat().st_size, int(psutil.virtual_memory().available)
    if size > free:
        raise BackendError(
            ErrorKind.BAD_MODEL,
            f"{shown} is too large: it needs {size / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free.",
        )


def physical_cores() -> int:
    """Cores this process may use; two hardware threads of one core count once, as they do not help llama.cpp."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        import psutil
    except ImportError:
        return usable
    return min(psutil.cpu_count(logical=False) or usable, usable)
