"""Text Generation Inference on loopback: `/generate`, `/generate_stream` and `/v1/chat/completions`."""

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
CHAT = "/v1/chat/completions"
TYPES = {422: "validation", 429: "overloaded", 424: "generation", 500: "incomplete_generation"}


class TgiService(LoopbackService):
    """Ends its answers with a special token. Checks a key as a proxy in front of it would."""

    def routes(self) -> list[BaseRoute]:
        asked = [Route(path, self._generate, methods=["POST"]) for path in ("/generate", "/generate_stream", CHAT)]
        return [*asked, Route("/info", self._info, methods=["GET"])]

    async def _info(self, request: Request) -> Response:
        return JSONResponse({"model_id": f"some/{MODEL}", "max_input_tokens": 4095, "max_total_tokens": 4096})

    async def _generate(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "unauthorized")
        body = seen.body
        chat, streamed = seen.path == CHAT, seen.path == "/generate_stream"
        if problem := self._problem(body if chat else body["parameters"]):
            if not streamed:
                return self.refuse(seen, 422, f"Input validation error: {problem}")
            # the head of a stream is sent before anything is checked
            error = {"error": f"Input validation error: {problem}", "error_type": "validation"}
            self.script.insert(0, Answer(deltas=(), stream_error=error))
        return self.answer(seen, streamed=streamed or bool(chat and body.get("stream")))

    @staticmethod
    def _problem(parameters: dict[str, Any]) -> str:
        if not parameters.get("temperature", 1) > 0:
            return "`temperature` must be strictly positive"
        if not 0 < parameters.get("top_p", 0.5) < 1:
            return "`top_p` must be > 0.0 and < 1.0"
        return "`stop` supports up to 4 stop sequences" if len(parameters.get("stop", [])) > 4 else ""

    def error(self, status: int, detail: Any) -> Any:
        return detail if isinstance(detail, dict) else {"error": detail, "error_type": TYPES.get(status, "unknown")}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        if seen.path == CHAT:
            return self._chat({"message": {"content": answer.text}, "finish_reason": answer.finish_reason}, answer)
        return {"generated_text": answer.text, "details": self._details(answer), **answer.extra}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        if seen.path == CHAT:
            return self.event(self._chat({"delta": {"content": text}, "finish_reason": None}), field="data: ")
        token = {"id": 5, "text": text, "logprob": -0.1, "special": False}
        record = {"index": 1, "token": token, "generated_text": None, "details": None, **answer.extra}
        if last and answer.finish_reason == "length":  # then the last token is one of the text
            record |= {"generated_text": answer.text, "details": self._details(answer)}
        return self.event(record, field="data:")

    def end(self, answer: Answer, seen: Seen) -> bytes:
        if seen.path == CHAT:
            choice = {"delta": {"content": ""}, "finish_reason": answer.finish_reason}
            return self.event(self._chat(choice, answer)) + self.event("[DONE]")
        if answer.deltas and answer.finish_reason == "length":
            return b""
        token = {"id": 0, "text": "<|endoftext|>", "logprob": -0.1, "special": True}
        record = {"index": 9, "token": token, "generated_text": answer.text, "details": self._details(answer)}
        return self.event(record, field="data:")

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        record = self.error(424, error) if isinstance(error, str) else error
        return self.event(record, field="data:")

    def ping(self, answer: Answer) -> bytes:
        return b":\n\n"

    @staticmethod
    def _details(answer: Answer) -> dict[str, Any]:
        reason = "eos_token" if answer.finish_reason == "stop" else answer.finish_reason
        tokens = {"generated_tokens": len(answer.deltas), "input_length": answer.prompt_tokens}
        return {"finish_reason": reason, **tokens, "seed": None}

    @staticmethod
    def _chat(choice: dict[str, Any], answer: Answer | None = None) -> dict[str, Any]:
        record: dict[str, Any] = {"object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
        if answer:
            tokens = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": len(answer.deltas)}
            record |= {"usage": tokens, **answer.extra}
        return record


Service = TgiService

if __name__ == "__main__":
    sys.exit(main(Service))
