"""Puts backends and engine together from settings, for the server and the command line alike.

The only module that may import `backends.registry`. Imports what it composes when called: start-up is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.base import Backend, Observer
    from completion.engine import Engine
    from completion.trace import TraceLog
    from lsp_server.settings import Settings


def build_backends(settings: Settings, observer: Observer, *, at_once: int = 0) -> tuple[Backend, ...]:
    """The chosen backends in their order, each with its guard; a notice to `observer` for each that cannot be built.

    `at_once`: so many requests are put to each at the same time, if that is more than an editor does.
    """
    from backends.base import BackendError
    from backends.guard import Guard
    from backends.registry import create
    from lsp_server.settings import no_backend

    if not settings.order and settings.untouched:  # otherwise a problem was reported
        observer.notice("no-backend", no_backend())
    built = []
    for name in settings.order:
        try:
            backend = create(name, settings.backends[name], observer)
            if at_once:
                _make_room(backend, at_once)
            built.append(Guard(backend, settings.backends[name], observer))
        except BackendError as error:
            observer.notice(f"backend {name}", error.message)
    return tuple(built)


def _make_room(backend: Backend, at_once: int) -> None:
    from backends._service import HttpBackend  # others have no connections

    if isinstance(backend, HttpBackend):
        backend.at_once(at_once)


def refusal(backend: Backend, settings: Settings) -> str:
    """Why nothing may be sent to a backend, not even a greeting; a sentence, or nothing."""
    from completion.engine import not_remote

    if settings.engine.privacy.allow_remote or not backend.capabilities.remote:
        return ""
    return not_remote(backend.name, settings.engine)


def build_engine(settings: Settings, backends: Sequence[Backend], traces: TraceLog, observer: Observer) -> Engine:
    """An engine around `backends`; with none every request ends as `no-backend`."""
    from completion.engine import Engine

    families = {name: settings.backends[name].family for name in settings.order}
    return Engine(backends, settings.engine, traces=traces, families=families, observer=observer)
