"""Text Generation Inference: `/generate_stream` with a raw prompt, and chat. Knows no editor.

It has no infilling of its own: the prompt comes in the form of the model's family.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backends._one_model import OneModelBackend, name_in
from backends._openai_wire import ChoiceReader, count_of, messages_of
from backends._service import Ask, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    Finish,
    InfillPrompt,
    Observer,
    Shape,
    Usage,
)
from backends.settings import BackendSettings

MAX_STOPS = 4  # --max-stop-sequences, if nobody changed it
# "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: …", "`inputs` must have less than 1024 tokens. Given: …"
_TOO_LONG = re.compile(r"must (be <=|have less than) \d+", re.I)
_KINDS = {
    "overloaded": ErrorKind.OVERLOADED,
    "unhealthy": ErrorKind.OVERLOADED,
    "validation": ErrorKind.BAD_REQUEST,
}


class TgiBackend(OneModelBackend):
    """The one model of a TGI server. `parameters` are those of `/generate` (`top_k`, `seed` …), and `stream`."""

    about = "/info"

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        super().__init__(name, settings, observer)
        self._parameters = dict(settings.parameters)
        self._stream = bool(self._parameters.pop("stream", True))

    @property
    def capabilities(self) -> Capabilities:
        shapes = frozenset({Shape.RAW, Shape.CHAT})
        return Capabilities(shapes, context_tokens=self._context_tokens, remote=self._http.remote)

    def described(self, record: Mapping[str, Any]) -> tuple[str, int | None]:
        return name_in(record.get("model_id")), count_of(record, "max_total_tokens") or None

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if isinstance(prompt, InfillPrompt):
            raise self.cannot_infill()
        if isinstance(prompt, ChatPrompt):
            body: dict[str, Any] = {"model": self._settings.model or "tgi", "messages": messages_of(prompt)}
            body |= {"stream": self._stream, **self._sampling(request, "max_tokens", "presence_penalty")}
            url = self._http.url("/v1/chat/completions")
            return Ask(url, body, ChoiceReader(), Shape.CHAT, source=source_of(prompt))
        url = self._http.url("/generate_stream" if self._stream else "/generate")
        parameters = self._sampling(request, "max_new_tokens", "top_k", "repetition_penalty")
        parameters["details"] = True  # they say why an answer ends
        body = {"inputs": prompt.text, "parameters": parameters}
        return Ask(url, body, _Answer(), Shape.RAW, source=prompt.text)

    def _sampling(self, request: BackendRequest, limit: str, *more: str) -> dict[str, Any]:
        """What the service would refuse is left out: a temperature of 0, which is its default, and a top_p of 1."""
        sampling = {limit: request.max_tokens, "temperature": request.temperature, **self._parameters}
        sampling |= request.sampling.named("temperature", "top_p", "seed", "frequency_penalty", *more)
        stops = [text for text in request.stop if text][:MAX_STOPS]
        if stops and "stop" not in sampling:
            sampling["stop"] = stops
        if not sampling["temperature"]:
            del sampling["temperature"]
        if sampling.get("top_p") in (0, 1):
            del sampling["top_p"]
        return sampling

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if _TOO_LONG.search(said):
            return ErrorKind.CONTEXT_TOO_LONG
        found = record.get("error_type")
        if found in ("generation", "incomplete_generation"):  # the model failed, with 424 before a stream began
            return ErrorKind.STREAM_ERROR if streamed else ErrorKind.OVERLOADED
        return _KINDS.get(str(found)) if status in (None, 422) else None

    infill_hint = "The prompt is written in the form of the model's family."


class _Answer:
    """Turns the records of `/generate_stream`, or the one of `/generate`, into deltas."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        token, whole = record.get("token"), record.get("generated_text")
        if not (isinstance(whole, str) or (isinstance(token, Mapping) and not last)):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has neither a token nor generated_text.")
        text = _text_of(token) if isinstance(token, Mapping) else ""
        self._parts.append(text)
        if not isinstance(whole, str):
            return Delta(text)
        before = "".join(self._parts[:-1])
        details = record.get("details")
        details = details if isinstance(details, Mapping) else {}
        finish = Finish.LENGTH if details.get("finish_reason") == "length" else Finish.STOP
        usage = Usage(count_of(details, "input_length"), None, count_of(details, "generated_tokens"))
        # The final record repeats the whole text; detokenised at once, it may differ from the sum of the tokens.
        return Delta(whole[len(before) :] if whole.startswith(before) else text, finish, usage)

    def ended(self, *, done: bool) -> None:
        """A stream always has its final record."""


def _text_of(token: Mapping[str, Any]) -> str:
    text = token.get("text")
    return text if isinstance(text, str) and token.get("special") is not True else ""
