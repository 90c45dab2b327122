"""DeepSeek's infilling (beta) and chat. Knows no editor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx

from backends._errors import said_by
from backends._openai_wire import ChoiceReader, cannot_infill, finish_reason, messages_of
from backends._service import Ask, HttpBackend, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    ErrorKind,
    Observer,
    RawPrompt,
    Shape,
)
from backends.settings import BackendSettings

BETA = "/beta"  # the only base that infills; chat is not part of it
DEFAULT_URL = f"https://api.deepseek.com{BETA}"
MAX_TOKENS = 4096  # of an infill; DeepSeek's documentation
MAX_STOPS = 16  # the same
_NO_RESOURCES = "insufficient_system_resource"


class DeepseekBackend(HttpBackend):
    """One model of DeepSeek's service. `parameters` are fields of the request."""

    infill_hint = "It is asked in a chat."

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        if not settings.model:
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.model is not set; allowed: a model's name.")
        super().__init__(name, replace(settings, url=settings.url or DEFAULT_URL), observer)
        self._infills = True

    @property
    def capabilities(self) -> Capabilities:
        """INFILL until the service says that the model cannot, CHAT from then on."""
        return Capabilities(frozenset({Shape.INFILL if self._infills else Shape.CHAT}), remote=self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt, url = request.prompt, self._http.url("/completions")
        body: dict[str, Any] = {"model": self.model, "max_tokens": request.max_tokens}
        if isinstance(prompt, ChatPrompt):
            shape, url = Shape.CHAT, self._chat_url()
            body["messages"] = messages_of(prompt)
        elif isinstance(prompt, RawPrompt):
            raise BackendError(ErrorKind.SHAPE_UNSUPPORTED, "DeepSeek takes infill and chat prompts only.")
        elif not self._infills:
            raise self.cannot_infill()
        else:
            shape, body["max_tokens"] = Shape.INFILL, min(request.max_tokens, MAX_TOKENS)
            body |= {"prompt": prompt.prefix, "suffix": prompt.suffix}
        body |= {"temperature": request.temperature, "stream": True}
        if stops := [text for text in request.stop if text][:MAX_STOPS]:
            body["stop"] = stops
        body |= self._settings.parameters
        body |= request.sampling.named("temperature", "top_p", "frequency_penalty", "presence_penalty")
        return Ask(url, body, ChoiceReader(), shape, source=source_of(prompt))

    def _chat_url(self) -> httpx.URL:
        url = self._http.url("")
        return url.copy_with(path=url.path.rstrip("/").removesuffix(BETA) + "/chat/completions")

    def said(self, record: Mapping[str, Any]) -> str:
        if "choices" in record:
            return _NO_RESOURCES if finish_reason(record) == _NO_RESOURCES else ""
        return said_by(record)

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if ask.shape is Shape.INFILL and status in (400, 422) and cannot_infill(said):
            self._infills = False
            return ErrorKind.INFILL_UNSUPPORTED
        return ErrorKind.OVERLOADED if said == _NO_RESOURCES else None

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        wrong = ask.shape is Shape.INFILL and not self._http.url("").path.rstrip("/").endswith(BETA)
        if kind is ErrorKind.MODEL_NOT_FOUND and wrong:
            return f"DeepSeek infills at {DEFAULT_URL} only."
        return ""
