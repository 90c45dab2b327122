"""FFM (Formosa Foundation Model): `text_infilling`, and `generate` for models without it. Knows no editor.

The service's field names are kept as they are, `frequence_penalty` included. Terminators such as `<EOT>` are left in
the text: they belong to the model's family.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

from backends._ffm_records import Answer, cannot_infill, error_record, said_by, too_long
from backends._fill_me import MARKER, place_marker
from backends._http import (
    ERROR_BODY_BYTES,
    STATUS_KINDS,
    HttpClient,
    read_text,
    retry_after_s,
    safe_text,
    shown_url,
    status_kind,
)
from backends._sse import decode_object, is_event_stream, json_records, media_type
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    Check,
    Delta,
    ErrorKind,
    InfillPrompt,
    Observer,
    Piece,
    Probe,
    RawPrompt,
    Shape,
)
from backends.keys import Key, KeySource
from backends.settings import BackendSettings

INFILL_PATH = "/models/text_infilling"
GENERATE_PATH = "/models/generate"
GENERATE_HEADERS = {"X-API-HOST": "afs-inference"}
MIN_TEMPERATURE = 0.01  # the service refuses 0
MAX_STOPS = 4  # undocumented; four is what comparable services take

_NONE_LEFT: dict[str, Any] = {}

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Ask:
    """One request as the service takes it."""

    url: httpx.URL
    inputs: str
    infill: bool
    stand_in: str = ""


class FfmBackend:
    """One model of an FFM service. `parameters.stream = false` asks for whole answers; all others are the service's."""

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        self._name = name
        self._settings = settings
        self._observer = observer
        if not settings.model:
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.model is not set; allowed: a model's name.")
        parameters = dict(settings.parameters)
        self._stream = _checked_parameters(f"backends.{name}.parameters", parameters)
        self._parameters = parameters
        self._keys = KeySource(settings)
        self._http = HttpClient(name, settings)
        self._infills = True

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._settings.model

    @cached_property
    def fingerprint(self) -> str:
        parts = [self._settings.kind, shown_url(self._http.url("")), self.model, self._stream, self._parameters]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    @property
    def capabilities(self) -> Capabilities:
        """INFILL until the service says that the model cannot, RAW from then on; raw prompts are always taken."""
        shape = Shape.INFILL if self._infills else Shape.RAW
        return Capabilities(shapes=frozenset({shape}), remote=self._http.remote)

    async def prepare(self) -> None:
        await self._keys.get()
        await self._http.ready()

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        ask = self._ask(request)
        key = await self._keys.get()
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        answer = Answer(ask.stand_in)
        async with AsyncExitStack() as stack:
            async with self._http.within(deadline, ask.url):
                response = await self._http.post(
                    ask.url, headers=self._headers(ask, key), body=self._body(ask, request)
                )
                stack.push_async_callback(response.aclose)
            if response.status_code != 200 or not is_event_stream(response):
                async with self._http.within(deadline, ask.url, begun=True):
                    record = await self._whole(response, ask, key)
                yield answer.feed(record, last=True)
                return
            records = await stack.enter_async_context(aclosing(json_records(response)))
            while True:
                async with self._http.within(deadline, ask.url, begun=True):
                    record = await anext(records, _NONE_LEFT)
                if record is _NONE_LEFT:
                    raise BackendError(ErrorKind.TRUNCATED, f"The answer of {shown_url(ask.url)} broke off.")
                self._check(record, ask, key, streamed=True)
                delta = answer.feed(record)
                if delta.finish:
                    self._http.drain(records, stack.pop_all())
                    yield delta
                    return
                if delta.text:
                    yield delta

    async def probe(self) -> Probe:
        try:
            key = await self._keys.get()
        except BackendError as refusal:
            return Probe((Check("key", False, refusal.message),))
        checks = [Check("key", True, f"from {key.source}" if key else "none is configured")]
        prompt = InfillPrompt(prefix="def add(a, b):\n    return ", suffix="\n\nprint(add(1, 2))\n")
        error, latency = await self._try(BackendRequest(prompt, max_tokens=8))
        if error and error.kind is ErrorKind.INFILL_UNSUPPORTED:
            checks.append(Check("infill", False, error.message))
            error, latency = await self._try(BackendRequest(RawPrompt((Piece(prompt.prefix),)), max_tokens=8))
        elif not error:
            checks.append(Check("infill", True, f"{self.model} infills"))
        where = self._http.url("")
        checks.append(Check("request", not error, error.message if error else f"{shown_url(where)} answers"))
        if not error:
            tls = where.scheme == "https"
            checks.append(Check("TLS", True, "certificate verified" if tls else "not used: the URL is plain http"))
            checks.append(Check("latency", True, latency))
        return Probe(tuple(checks))

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _try(self, request: BackendRequest) -> tuple[BackendError | None, str]:
        """Run a small request; return its error, or how long it took."""
        clock = asyncio.get_running_loop().time
        begun, first = clock(), 0.0
        try:
            async with aclosing(self.stream(request)) as deltas:
                async for _ in deltas:
                    first = first or clock()
        except BackendError as error:
            return error, ""
        first_ms, all_ms = ((moment - begun) * 1000 for moment in (first, clock()))
        return None, f"first text after {first_ms:.0f} ms, whole answer after {all_ms:.0f} ms"

    def _ask(self, request: BackendRequest) -> _Ask:
        prompt = request.prompt
        if isinstance(prompt, InfillPrompt):
            if not self._infills:
                raise self._cannot_infill()
            inputs, stand_in = place_marker(prompt.prefix, prompt.suffix)
            if stand_in:
                _log.info("the text around the cursor holds %s; %s is sent in its place", MARKER, stand_in)
            if inputs.count(MARKER) != 1:
                raise BackendError(ErrorKind.BAD_REQUEST, f"The prompt would hold {MARKER} more than once.")
            return _Ask(self._http.url(INFILL_PATH), inputs, infill=True, stand_in=stand_in)
        if isinstance(prompt, RawPrompt):
            return _Ask(self._http.url(GENERATE_PATH), prompt.text, infill=False)
        raise BackendError(ErrorKind.BAD_REQUEST, "The ffm backend takes infill and raw prompts, not chat messages.")

    def _headers(self, ask: _Ask, key: Key | None) -> dict[str, str]:
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if not ask.infill:
            headers |= GENERATE_HEADERS
        if key:
            headers["X-API-KEY"] = key.value
        return headers

    def _body(self, ask: _Ask, request: BackendRequest) -> bytes:
        parameters: dict[str, Any] = {
            "max_new_tokens": request.max_tokens,
            "temperature": max(request.temperature, MIN_TEMPERATURE),
        }
        stops = [text for text in request.stop if text][:MAX_STOPS]
        if stops:
            parameters["stop_sequences"] = stops
        body = {
            "model": self.model,
            "inputs": ask.inputs,
            "stream": self._stream,
            "parameters": parameters | self._parameters,
        }
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")  # an editor may send lone surrogates

    async def _whole(self, response: httpx.Response, ask: _Ask, key: Key | None) -> dict[str, Any]:
        """Read what is no event stream: a whole answer, or an error in any form. Raises BackendError."""
        if response.status_code != 200:
            body = ""
            with suppress(httpx.HTTPError):  # the status says enough
                body = await read_text(response, ERROR_BODY_BYTES)
            raise self._refusal(response, body, ask, key)
        found = media_type(response)
        if not found.endswith("json"):
            what = "a web page" if "html" in found else repr(found or "no content type")
            raise BackendError(
                ErrorKind.PROTOCOL, f"{shown_url(ask.url)} answered with {what}, not with JSON or events: check url."
            )
        record = decode_object(await read_text(response))
        self._check(record, ask, key, streamed=False)
        return record

    def _check(self, record: Mapping[str, Any], ask: _Ask, key: Key | None, *, streamed: bool) -> None:
        """Let a record pass that holds text or ends the answer. Raises BackendError."""
        where, said = shown_url(ask.url), said_by(record)
        text, status = record.get("generated_text"), record.get("status_code")
        if status is not None or (text is None and said):
            self._note_infill(record, ask)
            code = status if isinstance(status, int) else None
            kind = ErrorKind.STREAM_ERROR if streamed else status_kind(code or 400, html=False)
            message = f"{where} reports an error{f' {code}' if code else ''}: {self._safe(said, ask, key)}"
            raise BackendError(ErrorKind.CONTEXT_TOO_LONG if too_long(said) else kind, message, status=code)
        # In a stream null is one more token that cannot be decoded alone; a whole answer must have text.
        if not (isinstance(text, str) or (streamed and text is None and "generated_text" in record)):
            raise BackendError(ErrorKind.PROTOCOL, f"The answer of {where} has no generated_text.")

    def _refusal(self, response: httpx.Response, body: str, ask: _Ask, key: Key | None) -> BackendError:
        """What an HTTP status other than 200 means. Raises BackendError itself if the model cannot infill."""
        status, html = response.status_code, "html" in media_type(response) or body.lstrip()[:1] == "<"
        record = {} if html else error_record(body)
        said = said_by(record)
        if status not in STATUS_KINDS:
            self._note_infill(record, ask)
        kind = status_kind(status, html=html)
        if kind is ErrorKind.BAD_REQUEST and too_long(said):
            kind = ErrorKind.CONTEXT_TOO_LONG
        if kind is ErrorKind.AUTH:
            self._keys.refused()
        detail = f": {self._safe(said, ask, key)}" if said else " with a web page in place of an answer" if html else ""
        message = f"{shown_url(ask.url)} answered HTTP {status}{detail}. {_advice(kind, status, key)}".rstrip()
        return BackendError(kind, message, status=status, retry_after_s=retry_after_s(response))

    def _note_infill(self, record: Mapping[str, Any], ask: _Ask) -> None:
        """Raise INFILL_UNSUPPORTED, and take only raw prompts from now on, if that is what the service said."""
        if not (ask.infill and cannot_infill(record)):
            return
        self._infills = False
        error = self._cannot_infill()
        self._observer.notice(f"ffm-no-infill:{self._name}:{self.model}", error.message)
        raise error

    def _cannot_infill(self) -> BackendError:
        return BackendError(
            ErrorKind.INFILL_UNSUPPORTED,
            f"The model {self.model} does not infill at this service: plain generation is used, which cannot see the "
            f"text behind the cursor as well. Models that infill: qwen2.5-coder and CodeLlama.",
        )

    def _safe(self, said: str, ask: _Ask, key: Key | None) -> str:
        secrets = (key.value, *self._http.secrets) if key else self._http.secrets
        return safe_text(said, secrets=secrets, source=ask.inputs)


def _advice(kind: ErrorKind, status: int, key: Key | None) -> str:
    match kind:
        case ErrorKind.AUTH if key:
            return f"The API key came from {key.source}."
        case ErrorKind.AUTH:
            return "No API key is configured: set key_env or key_command."
        case ErrorKind.QUOTA:
            return "The account's balance or quota is used up."
        case ErrorKind.MODEL_NOT_FOUND:
            return "Check url (the part before /models) and model."
        case ErrorKind.PROTOCOL if status < 400:
            return "Check url: the service has moved, or this is not it."
        case ErrorKind.PROTOCOL:
            return "A gateway answered, not the service; it may be down or too slow."
    return ""


_RANGES: Mapping[str, tuple[type, float, float, str]] = {
    # type, least, most, in words
    "max_new_tokens": (int, 1, 1e9, "a whole number above 0"),
    "temperature": (float, 0, 1e9, "a number, 0 or more"),
    "top_p": (float, 1e-9, 1, "a number above 0, at most 1"),
    "top_k": (int, 1, 100, "a whole number from 1 to 100"),
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
