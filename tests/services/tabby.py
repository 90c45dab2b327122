"""A Tabby server on loopback: `/v1/completions`, whole answers only."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "qwen2.5-coder-7b"
SETTINGS: dict[str, Any] = {}
REQUEST = frozenset({"language", "segments", "user", "debug_options", "temperature", "seed", "mode"})
SEGMENTS = frozenset(
    {
        "prefix",
        "suffix",
        "filepath",
        "git_url",
        "declarations",
        "relevant_snippets_from_changed_files",
        "relevant_snippets_from_recently_opened_files",
        "clipboard",
        "edit_history",
    }
)


class TabbyService(LoopbackService):
    """Whatever fails is a 400 without a body, unless the script words it."""

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/completions", self._complete, methods=["POST"]),
            Route("/v1/health", self._health, methods=["GET"]),
        ]

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"model": f"some/{MODEL}", "device": "cuda", "version": {"git_describe": "v0.30"}})

    async def _complete(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        body = seen.body
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "Unauthorized")
        segments = body.get("segments")
        if not segments or body.keys() - REQUEST or segments.keys() - SEGMENTS:
            return self.refuse(seen, 400, "")
        for snippet in segments.get("relevant_snippets_from_recently_opened_files", []):
            if snippet.keys() != {"filepath", "body", "score"}:
                return self.refuse(seen, 400, "")
        return self.answer(seen, streamed=False)

    def error(self, status: int, detail: Any) -> Any:
        return detail if isinstance(detail, dict) else str(detail)

    def whole(self, answer: Answer, seen: Seen) -> Any:
        return {"id": "cmpl-1", "choices": [{"index": 0, "text": answer.text}], **answer.extra}


Service = TabbyService

if __name__ == "__main__":
    sys.exit(main(Service))
