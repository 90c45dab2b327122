"""Ollama's own API: `/api/generate` with a suffix or raw, `/api/chat`. Knows no editor.

The model's template writes the infill tokens; models without one refuse a suffix and are asked raw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from backends._openai_wire import count_of, messages_of
from backends._service import Ask, HttpBackend, source_of
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

DEFAULT_URL = "http://127.0.0.1:11434"
# Fields of the request itself; all other parameters are options of the model, and ignored outside `options`.
OUTER = frozenset({"format", "keep_alive", "stream", "system", "template", "think", "truncate"})


class OllamaBackend(HttpBackend):
    """One model of an Ollama server. `parameters`: `keep_alive` and its like, or the model's options (`num_ctx` …)."""

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        if not settings.model:
            allowed = "a name that `ollama list` shows"
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.model is not set; allowed: {allowed}.")
        super().__init__(name, replace(settings, url=settings.url or DEFAULT_URL), observer)
        parameters = settings.parameters
        if not isinstance(parameters.get("options", {}), Mapping):
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.parameters.options: allowed: a table.")
        self._outer = {key: value for key, value in parameters.items() if key in OUTER}
        self._options = {key: value for key, value in parameters.items() if key not in OUTER | {"options"}}
        self._options |= parameters.get("options", {})
        self._infills = True

    @property
    def capabilities(self) -> Capabilities:
        """RAW, with INFILL until the server says that the model cannot, with CHAT from then on.

        Longer prompts than `num_ctx` lose their beginning without a word, so it is minded if it is set.
        """
        shapes = frozenset({Shape.RAW, Shape.INFILL if self._infills else Shape.CHAT})
        return Capabilities(shapes, context_tokens=count_of(self._options, "num_ctx") or None, remote=self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt, path, shape = request.prompt, "/api/generate", Shape.RAW
        body: dict[str, Any] = {"model": self.model}
        if isinstance(prompt, ChatPrompt):
            path, shape = "/api/chat", Shape.CHAT
            body |= {"messages": messages_of(prompt), "think": False}  # it would take the whole answer
        elif isinstance(prompt, InfillPrompt):
            if not self._infills:
                raise self.cannot_infill()
            shape = Shape.INFILL
            # An empty prompt only loads the model; an empty suffix means a chat.
            body |= {"prompt": prompt.prefix or "\n", "suffix": prompt.suffix or "\n"}
        else:
            body |= {"prompt": prompt.text or "\n", "raw": True}
        options: dict[str, Any] = {"num_predict": request.max_tokens, "temperature": request.temperature}
        if stops := [text for text in request.stop if text]:
            options["stop"] = stops
        options |= self._options
        same = ("temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty")
        options |= request.sampling.named(*same, repetition_penalty="repeat_penalty")
        body |= {"stream": True, "options": options, **self._outer}
        return Ask(self._http.url(path), body, _Answer(), shape, source=source_of(prompt))

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if ask.shape is Shape.INFILL and "does not support insert" in said:
            self._infills = False
            return ErrorKind.INFILL_UNSUPPORTED
        return ErrorKind.OVERLOADED if "server busy" in said else None

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        return f"`ollama pull {self.model}` fetches the model." if kind is ErrorKind.MODEL_NOT_FOUND else ""


class _Answer:
    """Turns the records of either route into deltas."""

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        message = record.get("message")
        text = message.get("content") if isinstance(message, Mapping) else record.get("response")
        if not isinstance(text, str):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no response: is it Ollama's own API?")
        if not (last or record.get("done") is True):
            return Delta(text)
        reason = record.get("done_reason")
        if reason in ("load", "unload"):
            raise BackendError(ErrorKind.PROTOCOL, f"Ollama did not answer, it took the request for one to {reason}.")
        usage = Usage(count_of(record, "prompt_eval_count"), None, count_of(record, "eval_count"))
        return Delta(text, Finish.LENGTH if reason == "length" else Finish.STOP, usage)

    def ended(self, *, done: bool) -> None:
        """A stream always has its final record."""
