"""Puts backends and engine together from settings, for the server and the command line alike.

The only module that may import `backends.registry`. Imports what it composes when called: start-up is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backends.base import Backend, Observer
    from backends.settings import BackendSettings
    from completion.engine import Engine
    from completion.learning import Learned
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


def build_engine(
    settings: Settings,
    backends: Sequence[Backend],
    traces: TraceLog,
    observer: Observer,
    learned: Learned | None = None,
) -> Engine:
    """An engine around `backends`; with none every request ends as `no-backend`."""
    from completion.engine import Engine

    return Engine(
        backends, settings.engine, traces=traces, families=families(settings), observer=observer, learned=learned
    )


def families(settings: Settings) -> dict[str, str]:
    """The prompt family of each backend as far as it is known: set, or that of a local model of the table."""
    return {name: family_of(each) for name, each in settings.backends.items()}


def family_of(backend: BackendSettings) -> str:
    """The prompt family as far as it is known; empty: it is guessed from the model's name."""
    if backend.family or backend.kind != "llama-cpp":
        return backend.family
    from backends._model_file import model_name
    from backends.model_table import BY_NAME

    known = None if backend.model_path else BY_NAME.get(model_name(backend))
    return known.family if known else ""
