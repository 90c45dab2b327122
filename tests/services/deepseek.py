"""DeepSeek's service on loopback: `/beta/completions` and `/chat/completions`."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "deepseek-chat"
SETTINGS: dict[str, Any] = {}
CHAT = "/chat/completions"


class DeepseekService(LoopbackService):
    """`finish_reason` may be any of DeepSeek's."""

    path = "/beta"

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/beta/completions", self._infill, methods=["POST"]),
            Route(CHAT, self._chat, methods=["POST"]),
        ]

    async def _infill(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        body = seen.body
        if refusal := self._refused(seen):
            return refusal
        if not self.infills:
            return self.refuse(seen, 400, f"{body['model']} does not support FIM completion")
        if not 0 < body.get("max_tokens", 16) <= 4096:
            return self.refuse(seen, 422, "Invalid max_tokens value, the valid range of max_tokens is [1, 4096]")
        if len(body.get("stop", [])) > 16:
            return self.refuse(seen, 422, "at most 16 stop sequences")
        return self.answer(seen, streamed=body.get("stream", False))

    async def _chat(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        return self._refused(seen) or self.answer(seen, streamed=seen.body.get("stream", False))

    def _refused(self, seen: Seen) -> ASGIApp | None:
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "Authentication Fails (no such user)")
        return None

    def error(self, status: int, detail: Any) -> Any:
        error = {"message": detail, "type": "invalid_request_error", "param": None, "code": "invalid_request_error"}
        return detail if isinstance(detail, dict) else {"error": error}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        said = {"message": {"content": answer.text}} if seen.path == CHAT else {"text": answer.text}
        choice = {"index": 0, **said, "finish_reason": answer.finish_reason}
        return {"id": "1", "object": "text_completion", "choices": [choice], **self._usage(answer), **answer.extra}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        said = {"delta": {"content": text}} if seen.path == CHAT else {"text": text}
        choice = {"index": 0, **said, "finish_reason": answer.finish_reason if last else None}
        usage = self._usage(answer) if last else {}
        return self.event({"id": "1", "object": "text_completion", "choices": [choice], **usage, **answer.extra})

    def end(self, answer: Answer, seen: Seen) -> bytes:
        empty = b"" if answer.deltas else self.part(answer, seen, "", True)
        return empty + self.event("[DONE]")

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        return self.event(self.error(500, error) if isinstance(error, str) else error)

    def ping(self, answer: Answer) -> bytes:
        return b": keep-alive\n\n"

    @staticmethod
    def _usage(answer: Answer) -> dict[str, Any]:
        return {"usage": {"prompt_tokens": answer.prompt_tokens, "completion_tokens": len(answer.deltas)}}


Service = DeepseekService

if __name__ == "__main__":
    sys.exit(main(Service))
