"""How the worker says that something failed. Imports nothing, so that it is there whatever is not installed."""

from __future__ import annotations


class WorkerError(Exception):
    """`kind` is a value of `backends.base.ErrorKind`; the message is for the user."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
