"""The service of the example backend on loopback: `/fill`, NDJSON."""

from __future__ import annotations

import sys
from typing import Any

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services.common import Answer, LoopbackService, Seen, line, main

MODEL = "example-coder"
SETTINGS: dict[str, Any] = {}


class ExampleService(LoopbackService):
    """It always streams."""

    media_type = "application/x-ndjson"

    def routes(self) -> list[BaseRoute]:
        return [Route("/fill", self._fill, methods=["POST"])]

    async def _fill(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if seen.headers.get("x-token") != self.key:
            return self.refuse(seen, 401, "unknown token")
        return self.answer(seen, streamed=True)

    def error(self, status: int, detail: Any) -> Any:
        return {"problem": detail}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        return line({"piece": text, **answer.extra})

    def end(self, answer: Answer, seen: Seen) -> bytes:
        why = "limit" if answer.finish_reason == "length" else "done"
        return line({"piece": "", "end": why, "tokens_read": answer.prompt_tokens})

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        return line({"problem": answer.stream_error})

    def ping(self, answer: Answer) -> bytes:
        return b"\n"


Service = ExampleService

if __name__ == "__main__":
    sys.exit(main(Service))
