"""FFM's routes: `text_infilling` and `generate`. Must not know who answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from backends.base import Finish, Sampling
from lsp_server.gateway.answering import Counts
from lsp_server.gateway.endpoint import Asked
from lsp_server.gateway.fields import Fields
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import Cause, Refusal

INFILL_PATH, GENERATE_PATH = "/models/text_infilling", "/models/generate"
MARKER = "<FILL_ME>"
MAX_NEW_TOKENS = 350  # if it is not said, as the service documents it
_MAX_TOP_K = 100


class Ffm:
    statuses: Mapping[Cause, int] = {Cause.MALFORMED: 422, Cause.FIELD: 422}
    separator: Literal["\n", "\r\n"] = "\r\n"
    named_pings = True

    def __init__(self, *, infill: bool) -> None:
        self._infill = infill

    def read(self, fields: Fields) -> Asked:
        parameters = fields.within("parameters")
        tokens = parameters.given("max_new_tokens")
        # Its LangChain wrapper says that -1 means as many as possible.
        longest = 10**9 if tokens == -1 else parameters.whole("max_new_tokens", 1)
        sampling = Sampling(
            temperature=parameters.number("temperature", 0, above=True),
            top_p=parameters.number("top_p", 0, 1, above=True),
            top_k=parameters.whole("top_k", 1, _MAX_TOP_K),
            repetition_penalty=parameters.number("frequence_penalty", 0, above=True),
            seed=parameters.seed("seed"),
        )
        question = Question(
            fields.text("model"),
            *self._texts(fields.text("inputs")),
            verbatim=not self._infill,
            max_tokens=longest or MAX_NEW_TOKENS,
            sampling=sampling,
            stop=(*parameters.stops("stop_sequences"), *parameters.stops("stop")),
        )
        return Asked(question, fields.flag("stream"))

    def _texts(self, inputs: str) -> tuple[str, str | None]:
        if not self._infill:
            return inputs, None
        prefix, *suffixes = inputs.split(MARKER)
        if len(suffixes) != 1:
            message = f"inputs must hold exactly one {MARKER}, found {len(suffixes)}"
            raise Refusal(Cause.FIELD, message, status=400)
        return prefix, suffixes[0]

    def writer(self, asked: Asked) -> _Writer:
        return _Writer()

    def refusal(self, refusal: Refusal, status: int) -> Any:
        if status != 422:
            return {"detail": refusal.message}
        kind = "json_invalid" if refusal.cause is Cause.MALFORMED else "value_error"
        return {"detail": [{"loc": ["body", *refusal.field], "msg": refusal.message, "type": kind}]}


class _Writer:
    """Records hold deltas; the last one, which may hold text too, has the counts."""

    def whole(self, text: str, counts: Counts) -> Any:
        return _record(text, counts)

    def part(self, text: str) -> Any:
        return _record(text, None)

    def end(self, text: str, counts: Counts) -> Iterator[Any]:
        yield _record(text, counts)

    def fault(self, refusal: Refusal, status: int) -> Iterator[Any]:
        yield {"status_code": status, "error": refusal.message}


def _record(text: str, counts: Counts | None) -> dict[str, Any]:
    prompt, generated = (counts.prompt_tokens, counts.generated_tokens) if counts else (0, 0)
    return {
        "generated_text": text,
        "function_call": None,
        "details": None,
        "total_time_taken": f"{counts.seconds:.2f} sec" if counts else None,
        "prompt_tokens": prompt,
        "generated_tokens": generated,
        "total_tokens": prompt + generated,
        "finish_reason": ("length" if counts.finish is Finish.LENGTH else "stop") if counts else None,
    }
