"""What all routes that generate text have in common: who asks, the body, the answer or its refusal, the client's going.

Must not know any API's fields.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from backends.base import Delta
from lsp_server.gateway.answering import Answering, Counts
from lsp_server.gateway.desk import Desk
from lsp_server.gateway.fields import Fields
from lsp_server.gateway.keys import KeyCheck
from lsp_server.gateway.limits import read_body
from lsp_server.gateway.question import Question
from lsp_server.gateway.refusal import Cause, Refusal

HEAD_S = 5.0  # a stream's head waits so long for the first text, so that a failure before it has its own HTTP status
PING_S = 15.0  # between keep-alives in a stream, seconds
SEND_S = 60.0  # a client that takes nothing for so long is gone, seconds


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as an API reads it. `counted`: a stream ends with a record of its counts."""

    question: Question
    stream: bool = False
    counted: bool = False


class Writer(Protocol):
    """Writes one answer in an API's form. Records are JSON values or, in a stream, texts sent as they are."""

    def whole(self, text: str, counts: Counts) -> Any: ...

    def part(self, text: str) -> Any:
        """A delta that is not the last."""

    def end(self, text: str, counts: Counts) -> Iterator[Any]:
        """The last delta, and what is said after it."""

    def fault(self, refusal: Refusal, status: int) -> Iterator[Any]:
        """A failure after the stream has begun."""


class Api(Protocol):
    statuses: Mapping[Cause, int]  # where they are not the usual ones
    separator: Literal["\n", "\r\n"]  # line ends of streams
    named_pings: bool  # keep-alives are events, not comments

    def read(self, fields: Fields) -> Asked:
        """Raises Refusal."""

    def writer(self, asked: Asked) -> Writer: ...

    def refusal(self, refusal: Refusal, status: int) -> Any:
        """The body of an error."""


class Services:
    """What every route is given."""

    def __init__(self, desk: Desk, check: KeyCheck, max_body: int, ping_s: float = PING_S) -> None:
        self.desk = desk
        self.check = check
        self.max_body = max_body
        self.ping_s = ping_s


class Endpoint:
    """An ASGI application for one route of an API."""

    def __init__(self, services: Services, api: Api) -> None:
        self._services = services
        self._api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._services.check(request.headers)
            body = await read_body(request, self._services.max_body)
            asked = self._api.read(Fields.of(body))
            self._services.desk.check(asked.question.model)
        except Refusal as refusal:
            await refused(self._api, refusal)(scope, receive, send)
            return
        except ClientDisconnect:
            return
        answering = Answering(asked.question, self._services.desk.ask(asked.question))
        try:
            response = await self._answered(request, asked, answering)
            if response is not None:
                with suppress(SendTimeoutError):
                    await response(scope, receive, send)
        finally:
            await answering.stop()

    async def _answered(self, request: Request, asked: Asked, answering: Answering) -> Response | None:
        """None: the client has gone."""
        writer = self._api.writer(asked)
        try:
            if asked.stream:
                if await _unless_gone(request, answering.begun(), HEAD_S) is _GONE:
                    return None
                return self._stream(answering, writer)
            answer = await _unless_gone(request, answering.whole(), None)
        except Refusal as refusal:
            return refused(self._api, refusal)
        return None if answer is _GONE else json_response(writer.whole(*answer))

    def _stream(self, answering: Answering, writer: Writer) -> Response:
        return EventSourceResponse(
            self._events(answering, writer),
            ping=self._services.ping_s,
            sep=self._api.separator,
            ping_message_factory=self._ping if self._api.named_pings else None,
            send_timeout=SEND_S,
        )

    async def _events(self, answering: Answering, writer: Writer) -> AsyncGenerator[str, None]:
        try:
            async with aclosing(answering.deltas()) as deltas:
                async for delta in deltas:
                    for record in _records(writer, delta, answering):
                        yield record if isinstance(record, str) else dumps(record)
        except Refusal as refusal:
            for record in writer.fault(refusal, status_of(self._api, refusal)):
                yield record if isinstance(record, str) else dumps(record)

    def _ping(self) -> ServerSentEvent:
        import datetime  # not needed otherwise

        now = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
        return ServerSentEvent(str(now), event="ping", sep=self._api.separator)


def _records(writer: Writer, delta: Delta, answering: Answering) -> Iterator[Any]:
    if delta.finish is None:
        yield writer.part(delta.text)
    else:
        yield from writer.end(delta.text, answering.counts(delta))


_GONE = object()


async def _unless_gone(request: Request, work: Any, limit_s: float | None) -> Any:
    """What `work` returns; None if it takes longer than `limit_s`, `_GONE` if the client went before."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        return _GONE if leaving.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.wait({working, leaving})


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def status_of(api: Api, refusal: Refusal) -> int:
    return refusal.status or api.statuses.get(refusal.cause, refusal.cause.status)


def refused(api: Api, refusal: Refusal) -> Response:
    status = status_of(api, refusal)
    headers = {}
    if refusal.retry_after_s is not None:
        headers["Retry-After"] = str(math.ceil(refusal.retry_after_s))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refusal.cause in (Cause.TOO_LARGE, Cause.SLOW):
        headers["Connection"] = "close"  # the rest of the body is not read
    return json_response(api.refusal(refusal, status), status, headers)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumps(value), status, headers, "application/json")


def dumps(value: Any) -> str:
    """As the services themselves write JSON: with blanks, other scripts as they are."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
