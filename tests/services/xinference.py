"""Xinference on loopback: OpenAI's routes, and the code routes if `code` is set."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

MODEL = "qwen2.5-coder-instruct"
SETTINGS: dict[str, Any] = {}
CHAT, CODE_PROMPT, CODE = "/v1/chat/completions", "/v1/code/prompt", "/v1/code/completions"


class XinferenceService(LoopbackService):
    """Frames streams as sse-starlette does (CRLF). `suffix` is dropped without a word, as its llama.cpp engine does.

    `infills` concerns the code routes. Further values of `Answer.final`: "done": `[DONE]` is said, as chats have it.
    """

    line_end = "\r\n"
    models = frozenset({MODEL, "llama-3-instruct", "base"})
    code = False  # whether the code routes are there
    loading = False
    old = False  # releases of 2024 answer 400 for an unknown model

    def routes(self) -> list[BaseRoute]:
        return [Route("/v1/{rest:path}", self._ask, methods=["POST"])]

    async def _ask(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if self.key and seen.headers.get("authorization") != f"Bearer {self.key}":
            return self.refuse(seen, 401, "Could not validate credentials", {"WWW-Authenticate": "Bearer"})
        if seen.path not in ("/v1/completions", CHAT, *((CODE, CODE_PROMPT) if self.code else ())):
            return self.refuse(seen, 404, "Not Found")
        return self._refused(seen) or (self._code(seen) if "/code/" in seen.path else self._answer(seen))

    def _answer(self, seen: Seen) -> ASGIApp:
        return self.answer(seen, streamed=seen.body.get("stream", False))

    def _refused(self, seen: Seen) -> ASGIApp | None:
        body = seen.body
        if body["model"] not in self.models:
            status = 400 if self.old else 404
            return self.refuse(seen, status, f"Model not found in the model list, uid: {body['model']}")
        if self.loading:
            return self.refuse(seen, 503, "Model is loading", {"Retry-After": "30"})
        if "logit_bias" in body:
            return self.refuse(seen, 501, "Not implemented")
        if not 0 <= body.get("temperature", 0.8) <= 2:
            return self.refuse(seen, 500, b"Internal Server Error: 1 validation error for CreateCompletion")
        return None

    def _code(self, seen: Seen) -> ASGIApp:
        body = seen.body
        if (mode := body.get("mode", "completion")) not in ("completion", "infill"):
            return self.refuse(seen, 400, "mode must be one of 'completion' or 'infill'")
        if mode == "infill" and not self.infills:
            return self.refuse(seen, 500, "This model is not support infill mode generate")
        if mode == "infill" and not body.get("suffix"):
            return self.refuse(seen, 500, "suffix is required in infill mode")
        if body.get("files") and not body.get("repo_name"):
            return self.refuse(seen, 500, "repo_name is required")
        if seen.path == CODE_PROMPT:
            self.script.insert(0, Answer(deltas=(_formed(body),)))
        return self.answer(seen, streamed=False)

    def error(self, status: int, detail: Any) -> Any:
        return detail if isinstance(detail, bytes) else {"detail": detail}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        if seen.path == CODE_PROMPT:
            return {"prompt": answer.text}
        said = (
            {"message": {"role": "assistant", "content": answer.text}} if seen.path == CHAT else {"text": answer.text}
        )
        return self._record(answer, [{"index": 0, **said, "logprobs": None, "finish_reason": answer.finish_reason}])

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        return self.event(self._chunk(answer, seen, text, None))

    def end(self, answer: Answer, seen: Seen) -> bytes:
        """The reason comes beside an empty text, and the counts once more without a choice."""
        last = self._chunk(answer, seen, "", answer.finish_reason)
        done = self.event("[DONE]") if answer.final == "done" else b""
        return self.event(last) + self.event(self._record(answer, [])) + done

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        return self.event({"error": error} if isinstance(error, str) else error)

    def _chunk(self, answer: Answer, seen: Seen, text: str, reason: str | None) -> dict[str, Any]:
        said = {"delta": {"content": text}} if seen.path == CHAT else {"text": text}
        return self._record(answer, [{"index": 0, **said, "logprobs": None, "finish_reason": reason}])

    @staticmethod
    def _record(answer: Answer, choices: list[dict[str, Any]]) -> dict[str, Any]:
        tokens = len(answer.deltas)
        counts = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": tokens}
        usage = {**counts, "total_tokens": answer.prompt_tokens + tokens}
        return {"id": "1", "object": "text_completion", "choices": choices, "usage": usage, **answer.extra}


def _formed(body: dict[str, Any]) -> str:
    """The prompt as CodeQwen's entry in the model list says."""
    files = "".join(f"<file_sep>{path}\n{text}\n" for path, text in body.get("files", {}).items())
    repo = f"<reponame>{body['repo_name']}\n{files}" if files else ""
    if body.get("mode") == "infill":
        return f"<fim_prefix>{body['prompt']}<fim_suffix>{body['suffix']}<fim_middle>"
    return f"{repo}{body['prompt']}"


Service = XinferenceService

if __name__ == "__main__":
    sys.exit(main(Service))
