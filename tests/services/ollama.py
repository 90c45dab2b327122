"""An Ollama server on loopback: `/api/generate` and `/api/chat`, NDJSON as Go writes it."""

from __future__ import annotations

import json
import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "qwen2.5-coder:7b"
SETTINGS: dict[str, Any] = {}
OPTIONS = frozenset({"num_predict", "temperature", "stop", "num_ctx", "top_k", "top_p", "seed"})
OPTIONS |= {"repeat_penalty", "frequency_penalty", "presence_penalty"}
CHAT = "/api/chat"


class OllamaService(LoopbackService):
    """Has the models MODEL and "llama3", which does not infill. Checks a key as a proxy in front of Ollama would."""

    media_type = "application/x-ndjson"
    models = frozenset({MODEL, "llama3"})

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/generate", self._generate, methods=["POST"]),
            Route(CHAT, self._chat, methods=["POST"]),
        ]

    async def _generate(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        body = seen.body
        if refusal := self._refused(seen):
            return refusal
        if body.get("raw") and (body.get("template") or body.get("system")):
            return self.refuse(seen, 400, "raw mode does not support template, system, or context")
        if body.get("suffix") and (not self.infills or body["model"] == "llama3"):
            return self.refuse(seen, 400, f"registry.ollama.ai/library/{body['model']}:latest does not support insert")
        if not body.get("prompt"):
            return self.refuse(seen, 200, {**self._base(seen), "response": "", "done": True, "done_reason": "load"})
        return self.answer(seen, streamed=body.get("stream", True))

    async def _chat(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        return self._refused(seen) or self.answer(seen, streamed=seen.body.get("stream", True))

    def _refused(self, seen: Seen) -> ASGIApp | None:
        body = seen.body
        if seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "unauthorized")
        if body["model"] not in self.models:
            return self.refuse(seen, 404, f"model '{body['model']}' not found")
        if body.keys() & OPTIONS or body.get("options", {}).keys() - OPTIONS:
            return self.refuse(seen, 400, "an option that is ignored where it stands")
        return None

    def error(self, status: int, detail: Any) -> Any:
        return detail if isinstance(detail, dict) else {"error": detail}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        return self._record(answer, seen, answer.text, last=True)

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        return self._line(self._record(answer, seen, text, last=False))

    def end(self, answer: Answer, seen: Seen) -> bytes:
        return self._line(self._record(answer, seen, "", last=True))

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        return self._line({"error": error} if isinstance(error, str) else error)

    def ping(self, answer: Answer) -> bytes:
        return b"\n"  # Ollama sends none; a proxy might

    @staticmethod
    def _line(record: Any) -> bytes:
        text = json.dumps(record, ensure_ascii=False)
        for character in "<>&\u2028\u2029":  # as encoding/json does
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text.encode("utf-8", "surrogatepass") + b"\n"

    @staticmethod
    def _base(seen: Seen) -> dict[str, Any]:
        return {"model": seen.body["model"], "created_at": "2026-01-01T00:00:00.000000Z"}

    def _record(self, answer: Answer, seen: Seen, text: str, *, last: bool) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text}} if seen.path == CHAT else {"response": text}
        record = {**self._base(seen), **said, "done": last, **answer.extra}
        if not last:
            return record
        counts = {"prompt_eval_count": answer.prompt_tokens, "eval_count": len(answer.deltas), "total_duration": 42}
        return {**record, "done_reason": answer.finish_reason, **counts}


Service = OllamaService

if __name__ == "__main__":
    sys.exit(main(Service))
