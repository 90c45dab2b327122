"""Tabby: `/v1/completions`, which is OpenAI's in name only. Knows no editor.

The server writes the prompt, counts the tokens and ends the answer as it sees fit; it does not stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from backends._one_model import OneModelBackend, name_in
from backends._openai_wire import ChoiceReader
from backends._service import Ask, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ErrorKind,
    File,
    InfillPrompt,
    Observer,
    Shape,
)
from backends.settings import BackendSettings

DEFAULT_URL = "http://127.0.0.1:8080"
SNIPPET_BYTES = 768  # of all snippets together; Tabby leaves out the first that goes beyond, and all behind it


class TabbyBackend(OneModelBackend):
    """A Tabby server. `parameters` are fields of the request: `user`, `seed`, `debug_options` …"""

    about = "/v1/health"

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        super().__init__(name, replace(settings, url=settings.url or DEFAULT_URL), observer)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(frozenset({Shape.INFILL}), extra_files=True, remote=self._http.remote)

    def described(self, record: Mapping[str, Any]) -> tuple[str, int | None]:
        return name_in(record.get("model")), None

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if not isinstance(prompt, InfillPrompt):
            raise BackendError(ErrorKind.SHAPE_UNSUPPORTED, "Tabby takes infill prompts only.")
        segments: dict[str, Any] = {"prefix": prompt.prefix, "suffix": prompt.suffix}
        if prompt.path:
            segments["filepath"] = prompt.path
        if snippets := list(_snippets(prompt.extra)):
            segments["relevant_snippets_from_recently_opened_files"] = snippets
        body: dict[str, Any] = {"language": prompt.language, "segments": segments, "temperature": request.temperature}
        body |= self._settings.parameters
        body |= request.sampling.named("temperature", "seed")
        return Ask(self._http.url("/v1/completions"), body, ChoiceReader(), Shape.INFILL, source=source_of(prompt))

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        return "Tabby does not say why; its own log does." if kind is ErrorKind.BAD_REQUEST else ""


def _snippets(extra: tuple[File, ...]) -> Iterator[Mapping[str, Any]]:
    """The files, most relevant first, as many lines as Tabby has room for."""
    room = SNIPPET_BYTES
    for number, file in enumerate(reversed(extra)):
        body = file.text
        if len(body.encode("utf-8", "replace")) > room:
            body = body.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
            body = body[: body.rfind("\n") + 1]
        if body.strip():
            yield {"filepath": file.path, "body": body, "score": 1 / (number + 1)}
        room -= len(body.encode("utf-8", "replace"))
