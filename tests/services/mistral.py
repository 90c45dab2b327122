"""Mistral's service on loopback: `/v1/fim/completions` and `/v1/chat/completions`."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "codestral-latest"
SETTINGS: dict[str, Any] = {}
COMMON = frozenset({"model", "max_tokens", "min_tokens", "temperature", "top_p", "stop", "random_seed", "stream"})


class MistralService(LoopbackService):
    """Has the models MODEL and "mistral-small-latest", which does not infill.

    Further values of `Answer.final`: "list": content comes as a list of parts. `finish_reason` may be "error".
    """

    models = frozenset({MODEL, "mistral-small-latest"})

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/fim/completions", self._infill, methods=["POST"]),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
        ]

    async def _infill(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if refusal := self._refused(seen, {"prompt", "suffix"}):
            return refusal
        if not self.infills or seen.body["model"] != MODEL:
            return self.refuse(seen, 400, "FIM is not enabled for this model")
        return self.answer(seen, streamed=seen.body.get("stream", False))

    async def _chat(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        return self._refused(seen, {"messages"}) or self.answer(seen, streamed=seen.body.get("stream", False))

    def _refused(self, seen: Seen, more: set[str]) -> ASGIApp | None:
        body = seen.body
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, {"detail": "Unauthorized"})
        if unknown := sorted(body.keys() - COMMON - more):
            problem = {"loc": ["body", unknown[0]], "msg": "Extra inputs are not permitted", "type": "extra_forbidden"}
            return self.refuse(seen, 422, {"detail": [problem]})
        if body["model"] not in self.models:
            return self.refuse(seen, 400, {**self._flat(f"Invalid model: {body['model']}"), "type": "invalid_model"})
        return None

    @staticmethod
    def _flat(message: Any) -> dict[str, Any]:
        return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3000"}

    def error(self, status: int, detail: Any) -> Any:
        return detail if isinstance(detail, dict) else self._flat(detail)

    def whole(self, answer: Answer, seen: Seen) -> Any:
        message = {"role": "assistant", "tool_calls": None, "content": self._content(answer, answer.text)}
        choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
        return {"id": "1", "object": "chat.completion", "model": MODEL, "choices": [choice], **self._usage(answer)}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        reason = answer.finish_reason if last else None
        choice = {"index": 0, "delta": {"content": self._content(answer, text)}, "finish_reason": reason}
        usage = self._usage(answer) if last else {}
        return self.event({"id": "1", "object": "chat.completion.chunk", "choices": [choice], **usage, **answer.extra})

    def end(self, answer: Answer, seen: Seen) -> bytes:
        empty = b"" if answer.deltas else self.part(answer, seen, "", True)
        return empty + self.event("[DONE]")

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        return self.event(self._flat(error) if isinstance(error, str) else error)

    @staticmethod
    def _content(answer: Answer, text: str) -> Any:
        return [{"type": "text", "text": text}] if answer.final == "list" else text

    @staticmethod
    def _usage(answer: Answer) -> dict[str, Any]:
        generated = len(answer.deltas)
        total = answer.prompt_tokens + generated
        return {
            "usage": {
                "prompt_tokens": answer.prompt_tokens,
                "completion_tokens": generated,
                "total_tokens": total,
            }
        }


Service = MistralService

if __name__ == "__main__":
    sys.exit(main(Service))
