"""OpenAI's `/v1/completions`, with `suffix`, and the list of models. Must not know who answers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from backends.base import Finish, Sampling
from lsp_server.gateway.answering import Counts
from lsp_server.gateway.endpoint import Asked
from lsp_server.gateway.fields import Fields
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import Cause, Refusal

PATH, MODELS_PATH = "/v1/completions", "/v1/models"
MAX_TOKENS = 16  # if it is not said, as the API documents it

_CODES = {Cause.UNAUTHORIZED: "invalid_api_key", Cause.MODEL: "model_not_found"}
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class OpenAI:
    statuses: Mapping[Cause, int] = {}
    separator: Literal["\n", "\r\n"] = "\n"
    named_pings = False

    def read(self, fields: Fields) -> Asked:
        suffix = fields.optional_text("suffix") or None
        question = Question(
            fields.text("model"),
            _prompt(fields),
            suffix,
            verbatim=suffix is None,
            **sampling(fields, MAX_TOKENS),
        )
        counted = fields.within("stream_options").flag("include_usage")
        return Asked(question, fields.flag("stream"), counted)

    def writer(self, asked: Asked) -> ChoiceWriter:
        return ChoiceWriter(asked.question.model, counted=asked.counted)

    def refusal(self, refusal: Refusal, status: int) -> Any:
        return _error(refusal, status)


def sampling(fields: Fields, max_tokens: int | None) -> dict[str, Any]:
    """Fields of a question: its length, stop strings and sampling. Refuses what would change the answer's form.

    `top_k` and `repetition_penalty` are no fields of OpenAI's, but of Xinference's and vLLM's.
    """
    for name in ("n", "best_of"):
        if fields.whole(name, 1) not in (None, 1):
            raise fields.wrong(name, "1")
    for name in ("echo", "logprobs", "logit_bias"):
        if fields.given(name):
            raise fields.wrong(name, "left out: it is not supported")
    return {
        "max_tokens": fields.whole("max_tokens", 1) or max_tokens,
        "stop": fields.stops("stop"),
        "sampling": Sampling(
            temperature=fields.number("temperature", 0, 2),
            top_p=fields.number("top_p", 0, 1),
            top_k=max(fields.whole("top_k", -1) or 0, 0) or None,  # -1 and 0: no limit
            seed=fields.seed("seed"),
            repetition_penalty=fields.number("repetition_penalty", 0, above=True),
            frequency_penalty=fields.number("frequency_penalty", -2, 2),
            presence_penalty=fields.number("presence_penalty", -2, 2),
        ),
    }


def _prompt(fields: Fields) -> str:
    given = fields.given("prompt")
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], str):
        return Fields({"prompt": given[0]}).text("prompt")
    if not isinstance(given, str):
        raise fields.wrong("prompt", "a text, or a list of one text")
    return fields.text("prompt")


class ChoiceWriter:
    """Writes `choices[0].text`. Counts stand in the record that has the reason or, if `counted`, in one after it."""

    def __init__(self, model: str, *, counted: bool = False) -> None:
        self._counted = counted
        self._head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model,
        }

    def whole(self, text: str, counts: Counts) -> Any:
        return {**self._record(text, counts), "usage": _usage(counts)}

    def part(self, text: str) -> Any:
        return self._record(text, None)

    def end(self, text: str, counts: Counts) -> Iterator[Any]:
        if self._counted:
            yield self._record(text, counts)
            yield {**self._head, "choices": [], "usage": _usage(counts)}
        else:
            yield {**self._record(text, counts), "usage": _usage(counts)}
        yield "[DONE]"

    def fault(self, refusal: Refusal, status: int) -> Iterator[Any]:
        yield _error(refusal, status)
        yield "[DONE]"

    def _record(self, text: str, counts: Counts | None) -> dict[str, Any]:
        reason = ("length" if counts.finish is Finish.LENGTH else "stop") if counts else None
        return {**self._head, "choices": [{"text": text, "index": 0, "logprobs": None, "finish_reason": reason}]}


def _usage(counts: Counts) -> dict[str, int]:
    return {
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.generated_tokens,
        "total_tokens": counts.prompt_tokens + counts.generated_tokens,
    }


def _error(refusal: Refusal, status: int) -> Any:
    kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "server_error")
    field = ".".join(refusal.field) or ("suffix" if refusal.cause is Cause.INFILL else None)
    message = refusal.message
    if refusal.cause is Cause.INFILL:
        message = "suffix is not supported by this model."
    return {"error": {"message": message, "type": kind, "param": field, "code": _CODES.get(refusal.cause)}}


def model_list(models: Sequence[str]) -> Any:
    entries = [{"id": model, "object": "model", "created": 0, "owned_by": "midfill"} for model in models]
    return {"object": "list", "data": entries}
