"""The backend of docs/adding-a-backend.md: its service takes `before` and `after`, and answers line by line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends._service import Ask, HttpBackend, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    Delta,
    ErrorKind,
    Finish,
    InfillPrompt,
    Shape,
    Usage,
)
from backends.keys import Key


class ExampleBackend(HttpBackend):
    """One model of the service. `parameters` are fields of the request."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(frozenset({Shape.INFILL}), remote=self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if not isinstance(prompt, InfillPrompt):
            raise BackendError(ErrorKind.SHAPE_UNSUPPORTED, "The example service takes infill prompts only.")
        body: dict[str, Any] = {"model": self.model, "before": prompt.prefix, "after": prompt.suffix}
        body |= {"limit": request.max_tokens, "heat": request.temperature, "stops": list(request.stop)}
        body |= self._settings.parameters
        return Ask(self._http.url("/fill"), body, _Answer(), Shape.INFILL, source=source_of(prompt))

    async def headers(self, ask: Ask, key: Key | None) -> Mapping[str, str]:
        return {"x-token": key.value} if key else {}

    def said(self, record: Mapping[str, Any]) -> str:
        return str(record["problem"]) if "problem" in record else super().said(record)


class _Answer:
    """Turns the records of one answer into deltas."""

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        text, end = record.get("piece"), record.get("end")
        if not isinstance(text, str):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no piece.")
        if not (last or end):
            return Delta(text)
        tokens = record.get("tokens_read")
        usage = Usage(prompt_tokens=tokens if isinstance(tokens, int) else None)
        return Delta(text, Finish.LENGTH if end == "limit" else Finish.STOP, usage)

    def ended(self, *, done: bool) -> None:
        """A stream always has its final record."""
