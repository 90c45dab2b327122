"""Puts questions to the configured backends, one after the other where they fail. Must not know HTTP or any API."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from backends.base import Backend, BackendError, Delta, Observer
from lsp_server.compose import families
from lsp_server.gateway.limits import Turnstile
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import Cause, Refusal
from lsp_server.gateway.route import Route
from lsp_server.settings import Settings

_log = logging.getLogger(__name__)


class Desk:
    """`backends`, at least one, are asked in this order."""

    def __init__(self, backends: Sequence[Backend], settings: Settings, observer: Observer) -> None:
        known = families(settings)
        self._routes = [Route(backend, known.get(backend.name, ""), settings, observer) for backend in backends]
        self._aliases = settings.gateway.aliases
        self.turnstile = Turnstile(settings.gateway.running, settings.gateway.waiting)

    @property
    def models(self) -> tuple[str, ...]:
        """All names a request may give the model."""
        return tuple(dict.fromkeys((*(route.model for route in self._routes), *self._aliases)))

    def check(self, model: str) -> None:
        """Raises Refusal(MODEL)."""
        self._named(model)

    def shown_prompt(self, question: Question) -> str:
        """Raises Refusal(MODEL), BackendError(INFILL_UNSUPPORTED)."""
        return self._named(question.model)[0].shown_prompt(question)

    async def ask(self, question: Question) -> AsyncGenerator[Delta, None]:
        """The answer as it is written; the last delta has `finish` and counts. Raises Refusal and BackendError."""
        routes = self._named(question.model)
        async with self.turnstile.turn():
            for route in routes:
                written = False
                try:
                    async with aclosing(route.ask(question)) as deltas:
                        async for delta in deltas:
                            written = written or bool(delta.text)
                            yield delta
                    return  # noqa: TRY300 - the loop goes on where it fails alone
                except BackendError as error:
                    _log.warning("backend %s: %s: %s", route.backend.name, error.kind.value, error.message)
                    if written or route is routes[-1]:
                        raise

    def _named(self, model: str) -> list[Route]:
        """The backends that answer for a model: its own, and those after it; for an alias all of them."""
        for at, route in enumerate(self._routes):
            if model == route.model:
                return self._routes[at:]
        if model in self._aliases:
            return self._routes
        known = ", ".join(self.models)
        raise Refusal(Cause.MODEL, f"Model not found: {model[:100]!r} is not served here; there is: {known}.")
