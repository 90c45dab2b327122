"""Mistral's infilling (`/v1/fim/completions`) and chat, at either of its hosts. Knows no editor.

Answers have the shape of a chat. The service tokenises the text on both sides without looking for special tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backends._errors import said_by
from backends._openai_wire import ChoiceReader, cannot_infill, finish_reason, messages_of
from backends._service import Ask, HttpBackend, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    ErrorKind,
    InfillPrompt,
    Observer,
    Shape,
)
from backends.settings import BackendSettings

DEFAULT_URL = "https://api.mistral.ai"
DEFAULT_MODEL = "codestral-latest"
CODESTRAL_HOST = "codestral.mistral.ai"


class MistralBackend(HttpBackend):
    """One model of Mistral's service. `parameters` are fields of the request: `random_seed`, `min_tokens`, `top_p` …"""

    infill_hint = "It is asked in a chat."

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        known = replace(settings, url=settings.url or DEFAULT_URL, model=settings.model or DEFAULT_MODEL)
        super().__init__(name, known, observer)
        self._infills = True

    @property
    def capabilities(self) -> Capabilities:
        """INFILL until the service says that the model cannot, CHAT from then on."""
        shape = Shape.INFILL if self._infills else Shape.CHAT
        return Capabilities(frozenset({shape}), literal_text=True, remote=self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        body: dict[str, Any] = {"model": self.model}
        if isinstance(prompt, ChatPrompt):
            path, shape = "/v1/chat/completions", Shape.CHAT
            body["messages"] = messages_of(prompt)
        elif not isinstance(prompt, InfillPrompt):
            raise BackendError(ErrorKind.SHAPE_UNSUPPORTED, "Mistral takes infill and chat prompts only.")
        elif not self._infills:
            raise self.cannot_infill()
        else:
            path, shape = "/v1/fim/completions", Shape.INFILL
            body |= {"prompt": prompt.prefix, "suffix": prompt.suffix}
        body |= {"max_tokens": request.max_tokens, "temperature": request.temperature, "stream": True}
        if stops := [text for text in request.stop if text]:
            body["stop"] = stops
        body |= self._settings.parameters
        body |= request.sampling.named("temperature", "top_p", seed="random_seed")
        return Ask(self._http.url(path), body, ChoiceReader(), shape, source=source_of(prompt))

    def said(self, record: Mapping[str, Any]) -> str:
        """Errors are flat; their `message` is a text, or holds what FastAPI says. A record with text is none."""
        if "choices" in record:
            return "the model failed" if finish_reason(record) == "error" else ""
        message = record.get("message")
        return said_by(message if isinstance(message, Mapping) else {"detail": message}) or said_by(record)

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if ask.shape is Shape.INFILL and status in (400, 404, 422) and cannot_infill(said):
            self._infills = False
            return ErrorKind.INFILL_UNSUPPORTED
        if record.get("type") == "invalid_model":
            return ErrorKind.MODEL_NOT_FOUND
        return ErrorKind.STREAM_ERROR if "choices" in record else None

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        if kind is not ErrorKind.AUTH:
            return ""
        if ask.url.host == CODESTRAL_HOST:
            return f"{CODESTRAL_HOST} takes keys of its own; others belong to {DEFAULT_URL}."
        return f"A key made for Codestral alone works at https://{CODESTRAL_HOST} only."
