"""Keeps a bench's local engine apart: others who use the same model would share its worker and its time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_RUNTIME = "XDG_RUNTIME_DIR"  # where workers are met


@contextmanager
def own_worker() -> Iterator[None]:
    """Workers started within are not met by other processes, nor theirs by us."""
    before = os.environ.get(_RUNTIME)
    with tempfile.TemporaryDirectory(prefix="midfill-", ignore_cleanup_errors=True) as folder:
        os.environ[_RUNTIME] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ[_RUNTIME]
            else:
                os.environ[_RUNTIME] = before
