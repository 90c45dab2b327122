"""Xinference: OpenAI's routes, and the code routes that some builds have. Knows no editor.

The code routes know the model's own form of a prompt, and several files, but do not stream. So they are used for models
of unknown families, or if `mode` says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from backends._http import status_kind
from backends._service import Ask, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    Check,
    Delta,
    ErrorKind,
    Finish,
    InfillPrompt,
    Observer,
    Probe,
    RawPrompt,
    Shape,
)
from backends.openai import MODES, SILENT, OpenAIBackend, no_route
from backends.settings import BackendSettings

DEFAULT_URL = "http://127.0.0.1:9997"
CODE_PROMPT, CODE_COMPLETIONS = "/code/prompt", "/code/completions"

_QUESTION = BackendRequest(InfillPrompt("def add(a, b):\n    return ", "\n"), max_tokens=1)
_STATUS = re.compile(r"(\d{3}): ")  # rate limits and others, as errors in a stream tell them
_NO_MODEL = re.compile(r"\bmodel\b.{0,80}not found", re.I)


class XinferenceBackend(OpenAIBackend):
    """One model of an Xinference service; `url` with or without `/v1`. `parameters` are fields of requests."""

    modes: Mapping[str, frozenset[Shape]] = {
        "": frozenset({Shape.RAW, Shape.CHAT}),  # and INFILL, if there are code routes
        "code": frozenset({Shape.INFILL, Shape.RAW}),
        "template": MODES["template"],
        "chat": MODES["chat"],
    }
    sampling = ("temperature", "top_p", "top_k", "repetition_penalty", "frequency_penalty", "presence_penalty")
    infill_hint = "Completion mode is used, which does not see the text behind the cursor."

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        base = (settings.url or DEFAULT_URL).rstrip("/")
        url = base if base.endswith("/v1") else f"{base}/v1"
        super().__init__(name, replace(settings, url=url), observer)
        self.infill_warning = settings.mode == "code"  # otherwise the family's form may serve
        self._infills = True  # at the code routes
        self._formed = ""  # a small prompt, as the service forms it

    @property
    def capabilities(self) -> Capabilities:
        """INFILL means the code routes, whether the model infills or only continues a text after other files."""
        code = Shape.INFILL in self._shapes
        templates = self._settings.mode != "code"
        return Capabilities(self._shapes, extra_files=code, prefers_template=templates, remote=self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if request is _QUESTION:
            body = {"model": self.model, **self._around(_QUESTION.prompt)}
            return Ask(self._http.url(CODE_PROMPT), body, _Prompt(), Shape.INFILL)
        if isinstance(prompt, InfillPrompt):
            return self._code(self._around(prompt), Shape.INFILL, request)
        if isinstance(prompt, RawPrompt) and self._settings.mode == "code":
            return self._code({"prompt": prompt.text, "mode": "completion"}, Shape.RAW, request)
        return super().ask(request)

    def _around(self, prompt: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {"prompt": prompt.prefix, "mode": "completion"}
        if self._infills:
            fields |= {"mode": "infill", "suffix": prompt.suffix or "\n"}
        if prompt.extra:  # without other files, `file_path` makes the service forget the prompt
            files = {file.path: file.text for file in prompt.extra}
            fields |= {"files": files, "repo_name": prompt.repo or "project", "file_path": prompt.path or "untitled"}
        return fields

    def _code(self, fields: Mapping[str, Any], shape: Shape, request: BackendRequest) -> Ask:
        ask = self.post(CODE_COMPLETIONS, fields, shape, request)
        return replace(ask, body={**ask.body, "stream": False}, source=source_of(request.prompt))

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if streamed:
            told = _STATUS.match(said)
            return status_kind(int(told[1]), html=False) if told else None
        if "/code/" in ask.url.path and record:
            if "not support infill" in said.lower():
                self._infills = False
                return ErrorKind.INFILL_UNSUPPORTED
            if no_route(status, said):
                self._shapes -= {Shape.INFILL} if not self._settings.mode else set()
                return ErrorKind.SHAPE_UNSUPPORTED if not self._settings.mode else None
        if status == 400 and _NO_MODEL.search(said):  # releases of 2024
            return ErrorKind.MODEL_NOT_FOUND
        if status == 501 or (status == 500 and "validation error" in said):
            return ErrorKind.BAD_REQUEST
        return super().error_kind(status, record, said, ask, streamed=streamed)

    async def decide(self) -> None:
        """Have a small prompt formed, which costs the model nothing: so it shows whether there are code routes."""
        try:
            async with aclosing(self.stream(_QUESTION)) as deltas:
                self._formed = "".join([delta.text async for delta in deltas])
        except BackendError as error:
            if error.kind in SILENT:
                raise
            self._decided = error.kind not in _NOT_NOW
            if error.kind is not ErrorKind.INFILL_UNSUPPORTED:
                return
        self._decided = True
        self._shapes |= {Shape.INFILL}

    async def probe(self) -> Probe:
        found = await super().probe()
        if not self._formed:
            return found
        shown = self._formed.replace("\n", "\\n")
        return Probe((*found.checks, Check("prompt", True, f"a small one, as the service forms it: {shown}")))

    def told(self) -> str:
        if self._settings.mode or not self._decided:
            return super().told()
        others = "chat" if Shape.CHAT in self._shapes else "plain continuation"
        if Shape.INFILL in self._shapes:
            others = f"the code routes, {'which infill' if self._infills else 'in completion mode'}"
        return f"template, for unknown families {others}" if Shape.RAW in self._shapes else others


# What these say of the service may be different at the next request.
_NOT_NOW = frozenset(ErrorKind) - {
    ErrorKind.INFILL_UNSUPPORTED,
    ErrorKind.SHAPE_UNSUPPORTED,
    ErrorKind.BAD_REQUEST,
    ErrorKind.PROTOCOL,
}


class _Prompt:
    """Reads the answer of `/v1/code/prompt`."""

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        text = record.get("prompt")
        if not isinstance(text, str):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no prompt.")
        return Delta(text, Finish.STOP)

    def ended(self, *, done: bool) -> None:
        """It does not stream."""
