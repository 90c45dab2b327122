"""A service with OpenAI's routes on loopback: `/v1/completions` and `/v1/chat/completions`."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "qwen2.5-coder-7b"
SETTINGS: dict[str, Any] = {}
CHAT = "/v1/chat/completions"


class OpenAIService(LoopbackService):
    """Servers differ; the attributes below say how. A request for one token is answered beside the script."""

    path = "/v1"
    suffix = "read"  # "refused", as vLLM does, or "ignored", as llama-server does
    routes_there = frozenset({"/v1/completions", CHAT})
    chat_only: frozenset[str] = frozenset()  # models that /completions refuses
    tells_usage = True  # `usage` is sent
    flat = False  # errors as vLLM's old releases worded them
    missing: Any = "Not Found"  # what a missing route answers: the error's text, or all of it

    def routes(self) -> list[BaseRoute]:
        return [Route("/v1/{rest:path}", self._ask, methods=["POST"])]

    async def _ask(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "Incorrect API key provided")
        return self.missing_route(seen) or self.refused(seen) or self.answered(seen)

    def missing_route(self, seen: Seen) -> ASGIApp | None:
        return None if seen.path in self.routes_there else self.refuse(seen, 404, self.missing)

    def refused(self, seen: Seen) -> ASGIApp | None:
        body = seen.body
        if len(body.get("stop", [])) > 4:
            return self.refuse(seen, 400, "Invalid 'stop': array too long. Expected an array with maximum length 4")
        if seen.path != CHAT and body["model"] in self.chat_only:
            said = "This is a chat model and not supported in the v1/completions endpoint."
            return self.refuse(seen, 404, f"{said} Did you mean to use v1/chat/completions?")
        if body.get("suffix") is not None and (self.suffix == "refused" or not self.infills):
            return self.refuse(seen, 400, "suffix is not currently supported")
        return None

    def answered(self, seen: Seen) -> ASGIApp:
        body = seen.body
        if body.get("max_tokens") == 1:
            read = body.get("prompt", "") + (body.get("suffix", "") if self.suffix == "read" else "")
            self.script.insert(0, Answer(deltas=("1",), finish_reason="length", prompt_tokens=len(read.split())))
        return self.answer(seen, streamed=body.get("stream", False))

    def error(self, status: int, detail: Any) -> Any:
        if isinstance(detail, dict):
            return detail
        error = {"message": detail, "type": "BadRequestError", "param": None, "code": status}
        return {"object": "error", **error} if self.flat else {"error": error}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        said = (
            {"message": {"role": "assistant", "content": answer.text}} if seen.path == CHAT else {"text": answer.text}
        )
        return {**self._record(answer, said, seen, answer.finish_reason), **self._usage(answer)}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        said = {"delta": {"content": text}} if seen.path == CHAT else {"text": text}
        usage = self._usage(answer) if last else {}
        return self.event({**self._record(answer, said, seen, answer.finish_reason if last else None), **usage})

    def end(self, answer: Answer, seen: Seen) -> bytes:
        empty = b"" if answer.deltas else self.part(answer, seen, "", True)
        return empty + self.event("[DONE]")

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        """vLLM says `[DONE]` after an error, too."""
        error = answer.stream_error
        return self.event(self.error(500, error) if isinstance(error, str) else error) + self.event("[DONE]")

    def _record(self, answer: Answer, said: dict[str, Any], seen: Seen, reason: str | None) -> dict[str, Any]:
        kind = "chat.completion" if seen.path == CHAT else "text_completion"
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": reason}
        return {"id": "cmpl-1", "object": kind, "created": 1, "model": MODEL, "choices": [choice], **answer.extra}

    def _usage(self, answer: Answer) -> dict[str, Any]:
        tokens = len(answer.deltas)
        counts = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": tokens}
        return {"usage": {**counts, "total_tokens": answer.prompt_tokens + tokens}} if self.tells_usage else {}


Service = OpenAIService

if __name__ == "__main__":
    sys.exit(main(Service))
