"""llama.cpp's `llama-server`: `/infill`, and `/completion` for a model without infill tokens. Knows no editor.

The server knows the tokens of its model and tokenises the text on both sides without looking for any in it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import httpx

from backends._errors import said_by
from backends._one_model import OneModelBackend, name_in
from backends._openai_wire import ChoiceReader, count_of, messages_of
from backends._service import Ask, Reader, source_of
from backends._sse import Lines, parts_of, records_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    Finish,
    Observer,
    RawPrompt,
    Shape,
    Usage,
)
from backends.settings import BackendSettings

DEFAULT_URL = "http://127.0.0.1:8080"


class LlamaServerBackend(OneModelBackend):
    """The one model of a llama-server. `parameters` are fields of the request: `id_slot`, `samplers`, `top_k` …"""

    about = "/props"

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        super().__init__(name, replace(settings, url=settings.url or DEFAULT_URL), observer)
        self._infills = True

    @property
    def capabilities(self) -> Capabilities:
        """INFILL until the server says that its model cannot, RAW and CHAT from then on.

        Raw prompts are searched for special tokens, infill prompts are not.
        """
        if self._infills:
            shapes = frozenset({Shape.INFILL})
            safe = Capabilities(shapes, literal_text=True, extra_files=True, remote=self._http.remote)
            return replace(safe, context_tokens=self._context_tokens)
        shapes = frozenset({Shape.RAW, Shape.CHAT})
        return Capabilities(shapes, context_tokens=self._context_tokens, remote=self._http.remote)

    def described(self, record: Mapping[str, Any]) -> tuple[str, int | None]:
        slot = record.get("default_generation_settings")
        context_tokens = count_of(slot, "n_ctx") if isinstance(slot, Mapping) else None
        return name_in(record.get("model_path")), context_tokens or None

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if isinstance(prompt, ChatPrompt):
            path, body = "/v1/chat/completions", {"messages": messages_of(prompt), "max_tokens": request.max_tokens}
            return self._ask(path, body, ChoiceReader(), Shape.CHAT, request)
        body = {"n_predict": request.max_tokens, "cache_prompt": True}
        if isinstance(prompt, RawPrompt):
            return self._ask("/completion", {"prompt": prompt.text, **body}, _Answer(), Shape.RAW, request)
        if not self._infills:
            raise self.cannot_infill()
        extra = [{"filename": file.path, "text": file.text} for file in prompt.extra]
        texts = {"input_prefix": prompt.prefix, "input_suffix": prompt.suffix, "input_extra": extra}
        return self._ask("/infill", {**texts, **body}, _Answer(), Shape.INFILL, request)

    def _ask(self, path: str, body: dict[str, Any], reader: Reader, shape: Shape, request: BackendRequest) -> Ask:
        if self._settings.model:
            body["model"] = self._settings.model  # for a router in front of several servers
        body |= {"temperature": request.temperature, "stream": True}
        if stops := [text for text in request.stop if text]:
            body["stop"] = stops
        body |= self._settings.parameters
        same = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")
        body |= request.sampling.named(*same, repetition_penalty="repeat_penalty")
        return Ask(self._http.url(path), body, reader, shape, source=source_of(request.prompt))

    def records(self, response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
        """Builds of before autumn 2025 tell errors in a field that event streams do not have."""
        headers = {"content-type": response.headers["content-type"]}
        return records_of(httpx.Response(200, headers=headers, content=_errors_as_data(response)))

    def said(self, record: Mapping[str, Any]) -> str:
        """The field of the old builds holds the error itself."""
        bare = "message" in record and "code" in record and "choices" not in record
        return said_by({"error": record} if bare else record)

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        error = record.get("error", record)
        found = error.get("type") if isinstance(error, Mapping) else None
        if ask.shape is Shape.INFILL and "infill is not supported" in said.lower():
            self._infills = False
            return ErrorKind.INFILL_UNSUPPORTED
        if found == "exceed_context_size_error":
            return ErrorKind.CONTEXT_TOO_LONG
        return ErrorKind.OVERLOADED if found == "unavailable_error" else None


class _Answer:
    """Turns the records of `/infill` and `/completion` into deltas."""

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        text = record.get("content")
        if not isinstance(text, str):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no content: is it a llama-server?")
        if not (last or record.get("stop") is True):
            return Delta(text)
        # `stopped_limit` is what older builds say
        limit = record.get("stop_type") == "limit" or record.get("stopped_limit") is True
        return Delta(text, Finish.LENGTH if limit else Finish.STOP, _usage(record))

    def ended(self, *, done: bool) -> None:
        """A stream always has its final record."""


def _usage(record: Mapping[str, Any]) -> Usage:
    timings = record.get("timings")
    prompt = count_of(record, "tokens_evaluated")  # of the whole prompt, whatever the name says
    evaluated = count_of(timings, "prompt_n") if isinstance(timings, Mapping) else None
    reused = None if prompt is None or evaluated is None else max(0, prompt - evaluated)
    return Usage(prompt, reused, count_of(record, "tokens_predicted"))


async def _errors_as_data(response: httpx.Response) -> AsyncIterator[bytes]:
    """The stream with its `error:` fields as `data:`. The server ends lines with `\\n`."""
    lines = Lines()
    async for part in parts_of(response):
        if ended := lines.feed(part):
            yield b"".join(_as_data(line) + b"\n" for line in ended)
    yield lines.rest


def _as_data(line: bytes) -> bytes:
    return b"data" + line[5:] if line.startswith(b"error:") else line
