"""A llama-server on loopback: `/infill`, `/completion` and `/v1/chat/completions` of one model."""

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
TYPES = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 501: "not_supported_error"}
CANNOT = "Infill is not supported by this model: prefix token is missing. suffix token is missing. "
CHAT = "/v1/chat/completions"


class LlamaServerService(LoopbackService):
    """Further values of `Answer.final`: "old": the fields and the in-stream errors of builds of before autumn 2025."""

    media_type = "text/event-stream"
    loading = False

    def routes(self) -> list[BaseRoute]:
        asked = [Route(path, self._complete, methods=["POST"]) for path in ("/infill", "/completion", CHAT)]
        return [*asked, Route("/props", self._props, methods=["GET"])]

    async def _props(self, request: Request) -> Response:
        if self.loading:
            return JSONResponse(self.error(503, "Loading model"), 503)
        return JSONResponse(
            {"model_path": f"/models/{MODEL}-q8_0.gguf", "default_generation_settings": {"n_ctx": 4096}}
        )

    async def _complete(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        body = seen.body
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "Invalid API Key")
        if seen.path == "/infill":
            if not self.infills:
                return self.refuse(seen, 501, CANNOT)
            for name in ("input_prefix", "input_suffix"):
                if not isinstance(body.get(name), str):
                    return self.refuse(seen, 400, f'"{name}" is required')
            for chunk in body.get("input_extra", []):
                if not isinstance(chunk.get("text"), str) or not isinstance(chunk.get("filename", ""), str):
                    return self.refuse(seen, 400, 'extra_context chunk must contain a "text" field with a string value')
        return self.answer(seen, streamed=body.get("stream", False))

    def error(self, status: int, detail: Any) -> Any:
        kind = TYPES.get(status, "unavailable_error" if status == 503 else "server_error")
        if isinstance(detail, dict):
            return {"error": {"code": status, "type": kind, **detail}}
        return {"error": {"code": status, "message": detail, "type": kind}}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        if seen.path == CHAT:
            choice = {"index": 0, "message": {"role": "assistant", "content": answer.text}}
            return self._chat({**choice, "finish_reason": answer.finish_reason}, answer)
        return self._record(answer, seen, answer.text, last=True)

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        if seen.path == CHAT:
            return self.event(self._chat({"index": 0, "delta": {"content": text}, "finish_reason": None}))
        return self.event(self._record(answer, seen, text, last=False))

    def end(self, answer: Answer, seen: Seen) -> bytes:
        if seen.path != CHAT:
            return self.event(self._record(answer, seen, "", last=True))
        choice = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
        return self.event(self._chat(choice, answer)) + self.event("[DONE]")

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        if not isinstance(error, str):
            return self.event(error)
        record = {"code": 500, "message": error, "type": "server_error"}
        return self.event(record, field="error: ") if answer.final == "old" else self.event({"error": record})

    def ping(self, answer: Answer) -> bytes:
        return b":\n\n"

    @staticmethod
    def _chat(choice: dict[str, Any], answer: Answer | None = None) -> dict[str, Any]:
        record: dict[str, Any] = {"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}
        if answer:
            tokens = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": len(answer.deltas)}
            record = {**record, "usage": tokens, **answer.extra}
        return record

    @staticmethod
    def _record(answer: Answer, seen: Seen, text: str, *, last: bool) -> dict[str, Any]:
        record = {"index": 0, "content": text, "tokens": [], "stop": last, "id_slot": -1, **answer.extra}
        tokens = {"tokens_predicted": len(answer.deltas), "tokens_evaluated": answer.prompt_tokens}
        if not last:
            return record | tokens
        length = answer.finish_reason == "length"
        if answer.final == "old":
            why: dict[str, Any] = {"stopped_eos": not length, "stopped_limit": length, "stopped_word": False}
        else:
            why = {"stop_type": "limit" if length else "eos", "stopping_word": "", "truncated": False}
        timings = {"prompt_n": answer.prompt_tokens - 6, "predicted_n": len(answer.deltas)}
        return record | tokens | why | {"model": MODEL, "prompt": "…", "timings": timings}


Service = LlamaServerService

if __name__ == "__main__":
    sys.exit(main(Service))
