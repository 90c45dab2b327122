"""Where the log goes and what may stand in it: never stdout, never keys, source text only at DEBUG."""

from __future__ import annotations

import logging
from pathlib import Path

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LONGEST = 200  # characters of a text argument that are logged by libraries
# These log what they send and receive, or who they talk to.
_LOUD = ("pygls.protocol.json_rpc", "pygls.protocol", "pygls.feature_manager", "httpx", "httpcore", "asyncio")
_BODIES = ("pygls",)  # these put whole messages into warnings and errors as well


class _WithoutBodies(logging.Filter):
    """Replaces message objects and long texts in the arguments of records of libraries by what they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.split(".", 1)[0] in _BODIES and isinstance(record.args, tuple):
            record.args = tuple(_short(argument) for argument in record.args)
        return True


def _short(argument: object) -> object:
    if argument is None or isinstance(argument, int | float):
        return argument
    if isinstance(argument, str) and len(argument) <= _LONGEST:
        return argument
    size = f" of {len(argument)} characters" if isinstance(argument, str) else ""
    return f"<{type(argument).__name__}{size}>"


def setup(log_file: Path | None = None, *, verbose: bool = False) -> None:
    """Log to `log_file` (appended, UTF-8) or stderr, at INFO, or DEBUG if `verbose`. Raises OSError."""
    handler = logging.FileHandler(log_file, encoding="utf-8") if log_file else logging.StreamHandler()
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.addFilter(_WithoutBodies())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    for name in _LOUD:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.raiseExceptions = False  # a full disk or a closed stderr must not write tracebacks in between
