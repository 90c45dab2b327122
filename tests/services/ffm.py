"""A real FFM service on loopback. In other processes: `python -m tests.services.ffm --port 0 [--script FILE]`."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, main

__all__ = ["MODEL", "SETTINGS", "Answer", "FfmService", "Service"]

MODEL = "qwen2.5-coder-7b-32k"
SETTINGS: dict[str, Any] = {}
MARKER = "<FILL_ME>"
PING_TEXT = "2023-09-26 04:25:08.978531"
RANGES: dict[str, Callable[[Any], bool]] = {
    "max_new_tokens": lambda value: type(value) is int and value > 0,
    "temperature": lambda value: value > 0,
    "top_p": lambda value: 0 < value <= 1,
    "top_k": lambda value: type(value) is int and 1 <= value <= 100,
    "frequence_penalty": lambda value: value > 0,
    "stop_sequences": lambda value: isinstance(value, list) and len(value) <= 4,
}


class FfmService(LoopbackService):
    """FFM: `text_infilling` and `generate`, as sse-starlette frames them (CRLF).

    Further values of `Answer.final`: "concatenation": the last record repeats all; "time": it has no finish_reason.
    """

    path = "/api"
    line_end = "\r\n"
    infilling = frozenset({MODEL, "codellama-7b"})
    chatting = frozenset({"only-chats"})  # models that have neither of the other routes

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/api/models/text_infilling", self._infill, methods=["POST"]),
            Route("/api/models/generate", self._generate, methods=["POST"]),
            Route("/api/models/conversation", self._converse, methods=["POST"]),
        ]

    async def _infill(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        body = seen.body
        if refusal := self._refused(seen, body):
            return refusal
        if not self.infills or body["model"] not in self.infilling:
            return self.refuse(seen, 400, f"model {body['model']} does not support text infilling")
        if (found := body["inputs"].count(MARKER)) != 1:
            return self.refuse(seen, 400, f"inputs must hold one {MARKER}, not {found}")
        return self.answer(seen, streamed=body.get("stream", False))

    async def _generate(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if refusal := self._refused(seen, seen.body):
            return refusal
        if seen.headers.get("x-api-host") != "afs-inference":
            return self.refuse(seen, 400, "X-API-HOST is missing")
        if seen.body["model"] in self.chatting:
            return self.refuse(seen, 400, f"model {seen.body['model']} does not support generate, use conversation")
        return self.answer(seen, streamed=seen.body.get("stream", False))

    async def _converse(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if refusal := self._refused(seen, seen.body, asked="messages"):
            return refusal
        if any(message["role"] not in ("system", "human", "assistant") for message in seen.body["messages"]):
            return self.refuse(seen, 422, [{"loc": ["body", "messages"], "msg": "role", "type": "value_error"}])
        return self.answer(seen, streamed=seen.body.get("stream", False))

    def _refused(self, seen: Seen, body: Any, asked: str = "inputs") -> ASGIApp | None:
        if seen.headers.get("x-api-key") != self.key:
            return self.refuse(seen, 401, "Invalid API key")
        if not isinstance(body.get("stream", False), bool) or body.keys() - {"model", asked, "stream", "parameters"}:
            return self.refuse(seen, 422, [{"loc": ["body"], "msg": "wrong fields", "type": "value_error"}])
        for name, value in body.get("parameters", {}).items():
            if name not in RANGES or not RANGES[name](value):
                problem = {"loc": ["body", "parameters", name], "msg": "not allowed", "type": "value_error"}
                return self.refuse(seen, 422, [problem])
        return None

    def whole(self, answer: Answer, seen: Seen) -> Any:
        return self._record(answer, answer.text, last=True)

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        return self.event(self._record(answer, text, last=last and answer.final != "concatenation"))

    def end(self, answer: Answer, seen: Seen) -> bytes:
        if answer.deltas and answer.final != "concatenation":
            return b""
        return self.event(self._record(answer, answer.text, last=True))

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error = answer.stream_error
        return self.event({"status_code": 500, "error": error} if isinstance(error, str) else error)

    def event(self, record: Any, *, field: str = "data: ") -> bytes:
        """Framed by the library that the service itself uses."""
        text = record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
        return ServerSentEvent(text, sep=self.line_end).encode()

    def ping(self, answer: Answer) -> bytes:
        old = ServerSentEvent(PING_TEXT, event="ping", sep=self.line_end)
        return (old if answer.pings == "event" else ServerSentEvent(comment=f"ping - {PING_TEXT}", sep="\r\n")).encode()

    def own_pings(self, ping_s: float, *, old: bool) -> Route:
        """A route on sse-starlette alone, whose own task pings: one record each time something is released."""

        async def records(seen: Seen) -> AsyncIterator[ServerSentEvent]:
            for number, text in enumerate(("return ", "a + b")):
                await self.hold()
                record = self._record(Answer(), text, last=number == 1)
                yield ServerSentEvent(json.dumps(record, ensure_ascii=False))

        async def endpoint(request: Request) -> ASGIApp:
            named = ServerSentEvent(PING_TEXT, event="ping")
            factory = (lambda: named) if old else None
            return EventSourceResponse(records(await self.note(request)), ping=ping_s, ping_message_factory=factory)

        return Route("/api/models/text_infilling", endpoint, methods=["POST"])

    @staticmethod
    def _record(answer: Answer, text: str, *, last: bool) -> dict[str, Any]:
        tokens = len(answer.deltas)
        reason = "eos_token" if answer.finish_reason == "stop" else answer.finish_reason
        return {
            "generated_text": text,
            "function_call": None,
            "details": None,
            "total_time_taken": "0.42 sec" if last else None,
            "prompt_tokens": answer.prompt_tokens if last else 0,
            "generated_tokens": tokens if last else 0,
            "total_tokens": answer.prompt_tokens + tokens if last else 0,
            "finish_reason": reason if last and answer.final != "time" else None,
            **answer.extra,
        }


Service = FfmService

if __name__ == "__main__":
    sys.exit(main(Service))
