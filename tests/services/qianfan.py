"""A real Qianfan on loopback, V1 and V2, with tokens, signatures, the list of models, embeddings and ranks.

One port stands for all of the cloud's hosts. V2 takes `key`; V1 takes it as an access token, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from tests.services import bce
from tests.services.common import Answer, LoopbackService, Seen, main

__all__ = ["ACCESS", "MODEL", "SECRET", "SETTINGS", "Answer", "QianfanService", "Service"]

MODEL = "qwen3-coder-30b-a3b-instruct"
SETTINGS: dict[str, Any] = {}
V1 = "/rpc/2.0/ai_custom/v1/wenxinworkshop"
ACCESS, SECRET = "ALTAKloopback0access", "loopback0secret0key"
APP_KEY, APP_SECRET = "loopback0api0key", "loopback0app0secret"
NAMES = {400: "invalid_argument", 401: "invalid_iam_token", 403: "access_denied", 429: "rpm_rate_limit_exceeded"}
SERVICES = {
    "CodeLlama-7b-Instruct": "completions/codellama_7b_instruct",
    "My-Coder": "completions/x7k2_coder",
    "My-Coder-Chat": "chat/x7k2_chat",
    "Embedding-V1": "embeddings/embedding-v1",
}


class QianfanService(LoopbackService):
    """Further value of `Answer.final`: "bare": `stream_error` is a line of JSON. `detail` may be a whole record."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.tokens: dict[str, bool] = {}  # issued; whether still good
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.lifetime_s = 43_200
        self.refuse_tokens: dict[str, Any] | None = None  # the answer to everybody who wants one

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/oauth/2.0/token", self._oauth, methods=["POST"]),
            Route("/v1/BCE-BEARER/token", self._bearer, methods=["GET"]),
            Route("/wenxinworkshop/service/list", self._services, methods=["POST"]),
            Route(V1 + "/{group}/{name}", self._v1, methods=["POST"]),
            Route("/v2/completions", self._v2, methods=["POST"]),
            Route("/v2/chat/completions", self._v2, methods=["POST"]),
            Route("/v2/embeddings", self._v2, methods=["POST"]),
            Route("/v2/rerank", self._v2, methods=["POST"]),
        ]

    def expire(self) -> None:
        """No token issued so far is good any more."""
        self.tokens = dict.fromkeys(self.tokens, False)

    # --- who asks

    def _issue(self, begin: str) -> str:
        token = f"{begin}{len(self.tokens)}"
        self.tokens[token] = True
        return token

    def signature_problem(self, seen: Seen) -> str:
        query = parse_qsl(seen.query, keep_blank_values=True)
        return bce.problem(seen.method, seen.path, query, seen.headers, {ACCESS: SECRET}, self.clock())

    async def _oauth(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        given = dict(parse_qsl(seen.query))
        if self.refuse_tokens:
            return self.refuse(seen, 200, self.refuse_tokens)
        if given.get("client_id") != APP_KEY:
            return self.refuse(seen, 401, {"error": "invalid_client", "error_description": "unknown client id"})
        if given.get("client_secret") != APP_SECRET:
            return self.refuse(
                seen, 401, {"error": "invalid_client", "error_description": "Client authentication failed"}
            )
        return self._give(seen, {"access_token": self._issue("24.token"), "expires_in": 2_592_000})

    async def _bearer(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if why := self.signature_problem(seen):
            return self.refuse(seen, 403, {"message": why, "code": why.partition(",")[0]}, _told(why))
        made = self.clock()
        times = [f"{moment:%Y-%m-%dT%H:%M:%S.000Z}" for moment in (made, made + timedelta(seconds=self.lifetime_s))]
        token = self._issue("bce-v3/ALTAK-temporary/")
        return self._give(seen, {"userId": "u", "token": token, "createTime": times[0], "expireTime": times[1]})

    async def _services(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if why := self.signature_problem(seen):
            return self.refuse(seen, 200, {"error_code": 14, "error_msg": "IAM Certification failed"}, _told(why))
        items = [{"name": name, "url": f"{self.root}{V1}/{route}"} for name, route in SERVICES.items()]
        return self._give(seen, {"result": {"common": items[:1], "custom": items[1:]}})

    def _give(self, seen: Seen, record: dict[str, Any]) -> ASGIApp:
        return self.refuse(seen, 200, record)  # it is not the script's turn

    # --- V1

    async def _v1(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        if refusal := self._who_v1(seen):
            return refusal
        field = {"completions": "prompt", "chat": "messages", "embeddings": "input", "reranker": "documents"}
        body, wanted = seen.body, field.get(request.path_params["group"])
        if wanted is None:
            return self._error_v1(seen, 3, "Unsupported openapi method")
        if wanted not in body or "suffix" in body or "max_tokens" in body or not _sampling(body):
            return self._error_v1(seen, 336003, f"{wanted} is missing, or a parameter is wrong")
        if wanted == "messages" and [each["role"] for each in body["messages"]][::2] != ["user"]:
            return self._error_v1(seen, 336003, "the role of the first message must be user")
        return self.answer(seen, streamed=body.get("stream", False))

    def _who_v1(self, seen: Seen) -> ASGIApp | None:
        token = dict(parse_qsl(seen.query)).get("access_token")
        if token is None:
            why = self.signature_problem(seen)
            return self._error_v1(seen, 14, "IAM Certification failed", _told(why)) if why else None
        if token == self.key or self.tokens.get(token):
            return None
        known = token in self.tokens
        text = "Access token expired" if known else "Access token invalid or no longer valid"
        return self._error_v1(seen, 111 if known else 110, text)

    def _error_v1(self, seen: Seen, code: int, text: str, headers: dict[str, str] | None = None) -> ASGIApp:
        return self.refuse(seen, 200, {"error_code": code, "error_msg": text, "id": "as-1"}, headers)

    # --- V2

    async def _v2(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if token != self.key and not self.tokens.get(token):
            return self.refuse(seen, 401, "invalid or expired key")
        body = seen.body
        if "model" not in body or not _sampling(body) or body.get("max_tokens", 1) < 1:
            return self.refuse(seen, 400, "a parameter is missing or wrong")
        if seen.path == "/v2/completions" and not self.infills:
            error = {"code": "invalid_model", "message": "The model does not exist or you do not have access to it."}
            return self.refuse(seen, 400, {"error": error | {"type": "invalid_request_error"}, "id": "as-1"})
        return self.answer(seen, streamed=body.get("stream", False))

    # --- wire form

    def error(self, status: int, detail: Any) -> Any:
        if isinstance(detail, dict):
            return detail
        error = {"code": NAMES.get(status, ""), "message": detail, "type": "invalid_request_error"}
        return {"error": error, "id": "as-1"}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        if seen.path.endswith(("embeddings", "embedding-v1")):
            return {"data": [{"index": n, "embedding": [len(t), n]} for n, t in enumerate(seen.body["input"])]}
        if "rerank" in seen.path:
            scores = [_shared(seen.body["query"], text) for text in seen.body["documents"]]
            items = [{"index": n, "relevance_score": score} for n, score in enumerate(scores)]
            return {"results": sorted(items, key=lambda item: -item["relevance_score"])}
        return self._record(answer, seen, answer.text, last=True) | {"usage": _usage(answer)}

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        return self.event(self._record(answer, seen, text, last=last, streamed=True))

    def end(self, answer: Answer, seen: Seen) -> bytes:
        if seen.path.startswith(V1):
            return b"" if answer.deltas else self.event(self._record(answer, seen, "", last=True, streamed=True))
        counts = seen.body.get("stream_options", {}).get("include_usage")
        more = self.event({"id": "as-1", "choices": [], "usage": _usage(answer)}) if counts else b""
        return more + b"data: [DONE]\n\n"

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        error: Any = answer.stream_error
        if isinstance(error, str):
            named = {"error": {"code": "internal_error", "message": error, "type": "server_error"}}
            error = {"error_code": 336000, "error_msg": error} if seen.path.startswith(V1) else named
        return json.dumps(error).encode() + b"\n" if answer.final == "bare" else self.event(error)

    def _record(self, answer: Answer, seen: Seen, text: str, *, last: bool, streamed: bool = False) -> dict[str, Any]:
        reason = answer.finish_reason if last else None
        if seen.path.startswith(V1):
            begin = {"id": "as-1", "object": "completion", "created": 1, "result": text}
            cut = {"is_truncated": reason == "length", "need_clear_history": False, "usage": _usage(answer)}
            return begin | cut | ({"sentence_id": 0, "is_end": last} if streamed else {}) | answer.extra
        chats = seen.path == "/v2/chat/completions"
        content = (
            {"delta" if streamed else "message": {"role": "assistant", "content": text}} if chats else {"text": text}
        )
        choice = {"index": 0, **content} | ({"finish_reason": reason} if last else {})
        return {"id": "as-1", "object": "completion", "model": seen.body["model"], "choices": [choice], **answer.extra}


def _told(why: str) -> dict[str, str]:
    return {"X-Bce-Error-Code": why.partition(",")[0], "X-Bce-Error-Message": why}


def _sampling(body: dict[str, Any]) -> bool:
    stops = body.get("stop", [])
    return 0 < body.get("temperature", 1) <= 1 and len(stops) <= 4 and all(0 < len(stop) <= 20 for stop in stops)


def _usage(answer: Answer) -> dict[str, int]:
    tokens = len(answer.deltas)
    counts = {"prompt_tokens": answer.prompt_tokens, "completion_tokens": tokens}
    return counts | {"total_tokens": answer.prompt_tokens + tokens}


def _shared(query: str, text: str) -> float:
    words = set(query.split())
    return len(words & set(text.split())) / len(words)


Service = QianfanService

if __name__ == "__main__":
    sys.exit(main(Service))
