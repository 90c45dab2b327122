"""FFM (Formosa Foundation Model): `text_infilling`; `generate` or `conversation` for models without it.

Knows no editor.

The service's field names are kept as they are, `frequence_penalty` included. Terminators such as `<EOT>` are left in
the text: they belong to the model's family.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from typing import Any

from backends._errors import said_by
from backends._ffm_records import Answer, cannot_generate, cannot_infill
from backends._fill_me import MARKER, place_marker
from backends._http import STATUS_KINDS
from backends._service import Ask, HttpBackend, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ErrorKind,
    InfillPrompt,
    Observer,
    RawPrompt,
    Sampling,
    Shape,
)
from backends.keys import Key
from backends.settings import BackendSettings

INFILL_PATH = "/models/text_infilling"
GENERATE_PATH = "/models/generate"
CHAT_PATH = "/models/conversation"
GENERATE_HEADERS = {"X-API-HOST": "afs-inference"}
MIN_TEMPERATURE = MIN_TOP_P = 0.01  # the service refuses 0
MAX_TOP_K = 100
MAX_STOPS = 4  # undocumented; four is what comparable services take

_ROLES = {"user": "human"}
_NO_ROUTE = frozenset({404, 405, 410})

_log = logging.getLogger(__name__)


class FfmBackend(HttpBackend):
    """One model of an FFM service. `parameters.stream = false` asks for whole answers; all others are the service's."""

    infill_hint = (
        "Plain generation is used, which cannot see the text behind the cursor as well, or a chat. Models that infill:"
        " qwen2.5-coder and CodeLlama."
    )

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        if not settings.model:
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.model is not set; allowed: a model's name.")
        self._parameters = dict(settings.parameters)
        self._stream = _checked_parameters(f"backends.{name}.parameters", self._parameters)
        super().__init__(name, settings, observer)
        self._infills = self._generates = True
        self._told: set[str] = set()  # stand-ins that were logged

    @property
    def capabilities(self) -> Capabilities:
        """INFILL and RAW until the service says that the model cannot; CHAT in place of RAW."""
        return _capabilities(self._infills, self._generates, self._http.remote)

    def ask(self, request: BackendRequest) -> Ask:
        prompt = request.prompt
        if isinstance(prompt, InfillPrompt):
            if not self._infills:
                raise self.cannot_infill()
            inputs, stand_in = place_marker(prompt.prefix, prompt.suffix)
            if stand_in and stand_in not in self._told:
                self._told.add(stand_in)
                _log.info("the text around the cursor holds %s; %s is sent in its place", MARKER, stand_in)
            if inputs.count(MARKER) != 1:
                raise BackendError(ErrorKind.BAD_REQUEST, f"The prompt would hold {MARKER} more than once.")
            body, url = self._body(request, inputs=inputs), self._http.url(INFILL_PATH)
            return Ask(url, body, Answer(stand_in), Shape.INFILL, source=inputs)
        if isinstance(prompt, RawPrompt):
            body, url = self._body(request, inputs=prompt.text), self._http.url(GENERATE_PATH)
            return Ask(url, body, Answer(""), Shape.RAW, source=prompt.text, headers=GENERATE_HEADERS)
        messages = [{"role": _ROLES.get(each.role, each.role), "content": each.content} for each in prompt.messages]
        body, url = self._body(request, messages=messages), self._http.url(CHAT_PATH)
        return Ask(url, body, Answer(""), Shape.CHAT, source=source_of(prompt), headers=GENERATE_HEADERS)

    async def headers(self, ask: Ask, key: Key | None) -> Mapping[str, str]:
        return {"X-API-KEY": key.value} if key else {}

    def _body(self, request: BackendRequest, **asked: Any) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_new_tokens": request.max_tokens,
            "temperature": max(request.temperature, MIN_TEMPERATURE),
        }
        stops = [text for text in request.stop if text][:MAX_STOPS]
        if stops:
            parameters["stop_sequences"] = stops
        parameters |= self._parameters | _sampling(request.sampling)
        return {"model": self.model, **asked, "stream": self._stream, "parameters": parameters}

    def said(self, record: Mapping[str, Any]) -> str:
        """A record with text is no error, unless it says a status."""
        if record.get("status_code") is not None:
            return said_by(record) or "no text"
        return said_by(record) if record.get("generated_text") is None else ""

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        if ask.shape is Shape.INFILL and status not in STATUS_KINDS and cannot_infill(record):
            self._infills = False
            return ErrorKind.INFILL_UNSUPPORTED
        no_route = not self._infills and status in _NO_ROUTE  # of a model that is there: another route has answered
        if ask.shape is Shape.RAW and (no_route or (status not in STATUS_KINDS and cannot_generate(record))):
            self._generates = False
            return ErrorKind.SHAPE_UNSUPPORTED
        return None


@cache  # asked several times at every key
def _capabilities(infills: bool, generates: bool, remote: bool) -> Capabilities:
    plain = Shape.RAW if generates else Shape.CHAT
    return Capabilities(frozenset({Shape.INFILL, plain} if infills else {plain}), remote=remote)


def _sampling(sampling: Sampling) -> dict[str, Any]:
    """Within what the service allows."""
    named = sampling.named("temperature", "top_p", "top_k", repetition_penalty="frequence_penalty")
    least = {"temperature": MIN_TEMPERATURE, "top_p": MIN_TOP_P}
    named |= {name: max(named[name], low) for name, low in least.items() if name in named}
    return named | ({"top_k": min(named["top_k"], MAX_TOP_K)} if "top_k" in named else {})


_RANGES: Mapping[str, tuple[type, float, float, str]] = {
    # type, least, most, in words
    "max_new_tokens": (int, 1, 1e9, "a whole number above 0"),
    "temperature": (float, 0, 1e9, "a number, 0 or more"),
    "top_p": (float, 1e-9, 1, "a number above 0, at most 1"),
    "top_k": (int, 1, MAX_TOP_K, f"a whole number from 1 to {MAX_TOP_K}"),
    "frequence_penalty": (float, 1e-9, 1e9, "a number above 0"),
}


def _checked_parameters(path: str, parameters: dict[str, Any]) -> bool:
    """Check what is known of the service's parameters, in place; take out `stream`, which is none, and return it."""
    stream = parameters.pop("stream", True)
    if not isinstance(stream, bool):
        raise BackendError(ErrorKind.SETTINGS, f"{path}.stream is {stream!r}; allowed: true or false.")
    for name, (kind, least, most, allowed) in _RANGES.items():
        value = parameters.get(name, least)
        numeric = isinstance(value, int if kind is int else int | float) and not isinstance(value, bool)
        if not numeric or not least <= value <= most:
            raise BackendError(ErrorKind.SETTINGS, f"{path}.{name} is {value!r}; allowed: {allowed}.")
    if "temperature" in parameters:
        parameters["temperature"] = max(parameters["temperature"], MIN_TEMPERATURE)
    stops = parameters.get("stop_sequences", [])
    if (
        not isinstance(stops, list)
        or len(stops) > MAX_STOPS
        or not all(isinstance(stop, str) and stop for stop in stops)
    ):
        raise BackendError(ErrorKind.SETTINGS, f"{path}.stop_sequences: allowed: a list of at most {MAX_STOPS} texts.")
    return stream
