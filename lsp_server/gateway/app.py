"""The routes put together, and the access log. Must not know how backends are built or a socket is opened."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lsp_server.gateway import ffm, openai, xinference
from lsp_server.gateway.endpoint import Endpoint, Services, json_response, refused
from lsp_server.gateway.refusal import Refusal

HEALTH_PATH = "/health"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_log = logging.getLogger(__name__)


def application(services: Services) -> ASGIApp:
    async def health(_: Request) -> Response:
        return json_response({"status": "ok"})

    async def models(request: Request) -> Response:
        try:
            services.check(request.headers)
        except Refusal as refusal:
            return refused(openai.OpenAI(), refusal)
        return json_response(openai.model_list(services.desk.models))

    routes: dict[str, Callable[..., Any]] = {
        ffm.INFILL_PATH: Endpoint(services, ffm.Ffm(infill=True)),
        ffm.GENERATE_PATH: Endpoint(services, ffm.Ffm(infill=False)),
        openai.PATH: Endpoint(services, openai.OpenAI()),
        xinference.COMPLETIONS_PATH: Endpoint(services, xinference.Xinference()),
        xinference.PROMPT_PATH: xinference.CodePrompt(services).__call__,
    }
    app = Starlette(
        routes=[
            *(Route(path, endpoint, methods=["POST"]) for path, endpoint in routes.items()),
            Route(openai.MODELS_PATH, models, methods=["GET"]),
            Route(HEALTH_PATH, health, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _http_error},
    )
    app.router.redirect_slashes = False  # they would lead to whatever host the request names
    return _Logged(app, frozenset((*routes, openai.MODELS_PATH, HEALTH_PATH)))


async def _http_error(_: Request, error: Exception) -> Response:
    """No such route, or not with this method."""
    assert isinstance(error, HTTPException)
    return json_response({"detail": error.detail}, error.status_code, error.headers)


class _Logged:
    """One line per request: never a query, a header or a body, nor a path or method that is not known."""

    def __init__(self, app: ASGIApp, known: frozenset[str]) -> None:
        self._app = app
        self._known = known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status = time.perf_counter(), 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            path = scope["path"] if scope["path"] in self._known else "(unknown path)"
            method = scope["method"] if scope["method"] in _METHODS else "(unknown method)"
            took_ms = (time.perf_counter() - begun) * 1000
            _log.info("%s %s %s %.0f ms", method, path, status or "(no answer)", took_ms)
