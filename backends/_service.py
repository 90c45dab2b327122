"""What all services over HTTP have in common: ask, read the answer as it streams in, tell every failure as one kind.

A backend of this sort adds its dialect: how a request is written, how a record is read, how its errors are worded.
Must not know any one service.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import httpx

from backends._errors import advice, error_record, said_by, status_in, too_long
from backends._http import ERROR_BODY_BYTES, STATUS_KINDS, HttpClient, retry_after_s, status_kind
from backends._pairs import Pairs
from backends._safe import safe_text, shown_url
from backends._sse import DONE, decode_object, media_type, read_text, records_of, streams
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Check,
    Delta,
    ErrorKind,
    InfillPrompt,
    Message,
    Observer,
    Piece,
    Probe,
    Prompt,
    RawPrompt,
    Shape,
)
from backends.keys import Key, KeySource, checked_key
from backends.settings import BackendSettings

_NONE_LEFT: dict[str, Any] = {}
_PROBE = InfillPrompt(prefix="def add(a, b):\n    return ", suffix="\n\nprint(add(1, 2))\n")


class Reader(Protocol):
    """Reads the records of one answer, in order."""

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """`last`: the record is a whole answer, nothing follows. Raises BackendError for one that makes no sense."""

    def ended(self, *, done: bool) -> Delta | None:
        """The final delta, if the stream may end as it did; None if something is missing. `done`: `[DONE]` was said."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as a service takes it. `source` is the user's text in it, which no message may show."""

    url: httpx.URL
    body: Mapping[str, Any]
    reader: Reader
    shape: Shape
    source: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpBackend(ABC):
    """A backend over HTTP. Opens nothing before the first request. Subclasses fill in the methods marked as dialect."""

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Raises BackendError(SETTINGS)."""
        self._name = name
        self._settings = settings
        self._observer = observer
        self._keys = KeySource(settings)
        self._http = HttpClient(name, settings)

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._settings.model

    @cached_property
    def fingerprint(self) -> str:
        settings = self._settings
        parts = [settings.kind, shown_url(self._http.url("")), self.model, dict(settings.parameters)]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def use_key(self, value: str, source: str) -> None:
        """Take a key that a program gives, in place of the settings' own. Raises BackendError(SETTINGS)."""
        self._keys = KeySource(self._settings, given=checked_key(value, source))

    def at_once(self, requests: int) -> None:
        """Have room for so many requests at a time, if that is more than usual. Must come before the first one."""
        self._http.at_once(requests)

    # The dialect ------------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities: ...

    @abstractmethod
    def ask(self, request: BackendRequest) -> Ask:
        """Write a request. Raises BackendError."""

    async def headers(self, ask: Ask, key: Key | None) -> Mapping[str, str]:
        """What proves who asks. Raises BackendError."""
        return {"authorization": f"Bearer {key.value}"} if key else {}

    async def addressed(self, ask: Ask, key: Key | None) -> Ask:
        """The request with what had to be fetched first, such as a token. Raises BackendError and httpx's errors."""
        return ask

    def said(self, record: Mapping[str, Any]) -> str:
        """The error a record holds, in the service's words; empty if it holds none."""
        return said_by(record)

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        """What an error means, if its record says more than its status does. `said` is what `said` found in it.

        Here a backend notices that its service cannot do what was asked, and changes its capabilities.
        """
        return None

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        """What else a user can do about an HTTP error of this service; empty if nothing."""
        return ""

    def pause_s(self, response: httpx.Response) -> float | None:
        """How long the service wants to be left alone after an error, seconds; None if it does not say."""
        return retry_after_s(response)

    def records(self, response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
        """The records of a streamed answer."""
        return records_of(response)

    # What is common ---------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        await self._keys.get()
        await self._http.ready()

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        ask = self.ask(request)
        key = await self._keys.get()
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        pairs = Pairs()
        async with AsyncExitStack() as stack:
            async with self._http.within(deadline, ask.url):
                ask = await self.addressed(ask, key)
                response = await self._http.post(ask.url, headers=await self._all_headers(ask, key), body=encoded(ask))
                stack.push_async_callback(self._http.release, response)
            try:
                if response.status_code != 200 or not streams(response):
                    async with self._http.within(deadline, ask.url, begun=True):
                        record = await self._whole(response, ask, key)
                    delta = ask.reader.feed(record, last=True)
                    yield replace(delta, text=pairs.feed(delta.text, last=True))
                    return
                records = await stack.enter_async_context(aclosing(self.records(response)))
                while True:
                    async with self._http.within(deadline, ask.url, begun=True):
                        record = await anext(records, _NONE_LEFT)
                    delta = self._read(record, ask, key)
                    if delta.finish:
                        self._http.drain(records, stack.pop_all())
                        yield replace(delta, text=pairs.feed(delta.text, last=True))
                        return
                    if text := pairs.feed(delta.text):
                        yield replace(delta, text=text)
            except BackendError as error:
                raise _located(error, ask.url) from None

    async def aclose(self) -> None:
        await self._http.aclose()

    async def probe(self) -> Probe:
        """Ask for a few tokens, as an infill first, and tell what came of it."""
        try:
            key = await self._keys.get()
        except BackendError as refusal:
            return Probe((Check("key", False, refusal.message),))
        checks = [Check("key", True, f"from {key.source}" if key else "none is configured")]
        infills = Shape.INFILL in self.capabilities.shapes
        error, latency = await self._try(_PROBE if infills else self._plain_probe())
        if error and error.kind is ErrorKind.INFILL_UNSUPPORTED:
            checks.append(Check("infill", False, error.message, warning=True))
            error, latency = await self._try(self._plain_probe())
            if error and error.kind is ErrorKind.SHAPE_UNSUPPORTED:
                error, latency = await self._try(self._plain_probe())
        elif infills and not error:
            checks.append(Check("infill", True, f"{self.model or 'the model'} infills"))
        where = self._http.url("")
        checks.append(Check("request", not error, error.message if error else f"{shown_url(where)} answers"))
        if where.scheme == "http" and self._http.remote:
            what = "the key and the code go" if key else "the code goes"
            open_to_all = f"not used: {what} to {where.host} unencrypted. Use its https URL, if it has one."
            checks.append(Check("TLS", False, open_to_all, warning=True))
        elif not error:
            tls = where.scheme == "https"
            checks.append(Check("TLS", True, "certificate verified" if tls else "not used, nor needed on this machine"))
        if not error:
            checks.append(Check("latency", True, latency))
        return Probe(tuple(checks))

    def _plain_probe(self) -> Prompt:
        """A question to a model that does not infill."""
        if Shape.RAW in self.capabilities.shapes:
            return RawPrompt((Piece(_PROBE.prefix),))
        return ChatPrompt((Message("user", f"Complete this line of Python:\n{_PROBE.prefix}"),))

    async def _try(self, prompt: Prompt) -> tuple[BackendError | None, str]:
        """Ask for a few tokens; return the error, or how long it took."""
        request = BackendRequest(prompt, max_tokens=8)
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

    async def _all_headers(self, ask: Ask, key: Key | None) -> Mapping[str, str]:
        common = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        return {**common, **ask.headers, **await self.headers(ask, key)}

    def _read(self, record: dict[str, Any], ask: Ask, key: Key | None) -> Delta:
        """The delta in a record of a stream, or at its end. Raises BackendError."""
        if record is _NONE_LEFT or record is DONE:
            final = ask.reader.ended(done=record is DONE)
            if final is None:
                raise BackendError(ErrorKind.TRUNCATED, f"The answer of {shown_url(ask.url)} broke off.")
            return final
        self._check(record, ask, key, streamed=True)
        return ask.reader.feed(record, last=False)

    async def _whole(self, response: httpx.Response, ask: Ask, key: Key | None) -> dict[str, Any]:
        """Read what is no stream: a whole answer, or an error in any form. Raises BackendError."""
        if response.status_code != 200:
            body = ""
            with suppress(httpx.HTTPError, BackendError):  # the status says enough
                body = await read_text(response, ERROR_BODY_BYTES)
            raise self._refusal(response, body, ask, key)
        found = media_type(response)
        if not found.endswith("json"):
            shown = f"'{self._safe(found, ask, key)}'" if found else "no content type"
            what = "a web page" if "html" in found else shown
            raise BackendError(
                ErrorKind.PROTOCOL, f"{shown_url(ask.url)} answered with {what}, not with JSON or events: check url."
            )
        record = decode_object(await read_text(response))
        self._check(record, ask, key, streamed=False)
        return record

    def _check(self, record: Mapping[str, Any], ask: Ask, key: Key | None, *, streamed: bool) -> None:
        """Let a record pass that reports no error. Raises BackendError."""
        said = self.said(record)
        if not said:
            return
        status = status_in(record)
        kind = self._kind(status, record, said, ask, streamed=streamed, html=False)
        if kind is ErrorKind.INFILL_UNSUPPORTED:
            raise self.cannot_infill()
        if kind is ErrorKind.AUTH:
            self._keys.refused()
        where = shown_url(ask.url)
        message = f"{where} reports an error{f' {status}' if status else ''}: {self._safe(said, ask, key)}"
        message = " ".join(filter(None, (f"{message}.", advice(kind, status or 400, key), self.hint(kind, ask))))
        raise BackendError(kind, message, status=status)

    def _refusal(self, response: httpx.Response, body: str, ask: Ask, key: Key | None) -> BackendError:
        """What an HTTP status other than 200 means."""
        status, html = response.status_code, "html" in media_type(response) or body.lstrip()[:1] == "<"
        record = {} if html else error_record(body)
        said = self.said(record)
        kind = self._kind(status, record, said, ask, streamed=False, html=html)
        if kind is ErrorKind.INFILL_UNSUPPORTED:
            return self.cannot_infill()
        if kind is ErrorKind.AUTH:
            self._keys.refused()
        detail = f": {self._safe(said, ask, key)}" if said else " with a web page in place of an answer" if html else ""
        if response.next_request is not None:
            detail = f", which leads to {self._safe(shown_url(response.next_request.url), ask, key)}"
        message = f"{shown_url(ask.url)} answered HTTP {status}{detail}."
        message = " ".join(filter(None, (message, advice(kind, status, key), self.hint(kind, ask))))
        return BackendError(kind, message, status=status, retry_after_s=self.pause_s(response))

    def _kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool, html: bool
    ) -> ErrorKind:
        kind = self.error_kind(status, record, said, ask, streamed=streamed)
        if kind is ErrorKind.INFILL_UNSUPPORTED:
            key, message = f"no-infill:{self._name}:{self.model}", self.cannot_infill().message
            self._observer.notice(key, message, warning=self.infill_warning)
        if kind is not None:
            return kind
        by_status = status_kind(status or 400, html=html)
        if too_long(said) and (streamed or by_status is ErrorKind.BAD_REQUEST):
            return ErrorKind.CONTEXT_TOO_LONG
        return ErrorKind.STREAM_ERROR if streamed and status not in STATUS_KINDS else by_status

    def cannot_infill(self) -> BackendError:
        """The error for an infill prompt."""
        model = f"The model {self.model}" if self.model else "The model"
        message = f"{model} does not infill at this service. {self.infill_hint}".rstrip()
        return BackendError(ErrorKind.INFILL_UNSUPPORTED, message)

    infill_warning = True  # whether a user should hear of it
    infill_hint = "The text behind the cursor is used as far as the model's family has a form for it."

    def _safe(self, said: str, ask: Ask, key: Key | None) -> str:
        secrets = (key.value, *self._http.secrets) if key else self._http.secrets
        return safe_text(said, secrets=secrets, source=ask.source)


def _located(error: BackendError, url: httpx.URL) -> BackendError:
    """An answer that makes no sense, with the place it came from; other errors as they are."""
    if error.kind is not ErrorKind.PROTOCOL or shown_url(url) in error.message:
        return error
    return BackendError(error.kind, f"{shown_url(url)}: {error.message}", status=error.status)


def encoded(ask: Ask) -> bytes:
    """A request's body."""
    return json.dumps(ask.body, ensure_ascii=False).encode("utf-8", "replace")  # an editor may send lone surrogates


def source_of(prompt: Prompt) -> str:
    """The user's text in a prompt."""
    match prompt:
        case InfillPrompt():
            return "\n".join([*(file.text for file in prompt.extra), prompt.prefix, prompt.suffix])
        case RawPrompt():
            return prompt.text
        case ChatPrompt():
            return "\n".join(message.content for message in prompt.messages)
