"""Puts backend and engine together from settings, for the server and the command line alike.

The only module that may import `backends.registry`. Imports what it composes when called: start-up is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backends.base import Backend, Observer
    from completion.engine import Engine
    from completion.trace import TraceLog
    from lsp_server.settings import Settings


def build_backend(settings: Settings, observer: Observer) -> Backend | None:
    """The chosen backend; None, with a notice to `observer`, if there is none or it cannot be built."""
    from backends.base import BackendError
    from backends.registry import create
    from lsp_server.settings import NO_BACKEND, user_file

    if not settings.backend:
        if not settings.backends:  # otherwise a problem with `backend` was reported
            observer.notice("no-backend", NO_BACKEND.format(file=user_file()))
        return None
    try:
        return create(settings.backend, settings.backends[settings.backend], observer)
    except BackendError as error:
        observer.notice(f"backend {settings.backend}", error.message)
        return None


def build_engine(settings: Settings, backend: Backend | None, traces: TraceLog, observer: Observer) -> Engine:
    """An engine around `backend`; with None every request ends as `no-backend`."""
    from completion.engine import Engine

    chosen = settings.backends.get(settings.backend)
    family = chosen.family if chosen else ""
    return Engine(backend, settings.engine, traces=traces, family=family, observer=observer)
