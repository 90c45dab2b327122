"""What Qianfan's records say, in both versions of its API: errors, parts of an answer, its end; names of parameters.

Must not know how requests are sent or authorized.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import httpx

from backends._openai_wire import ChoiceReader, usage_of
from backends._sse import events_of, records_in
from backends.base import BackendError, Delta, ErrorKind, Finish, Sampling, Usage

LEAST = 0.01  # of a temperature and a top_p: the service refuses 0
TOKEN_CODES = frozenset({110, 111})  # the access token is invalid, has expired

# V1 reports errors as numbers, with HTTP status 200. The official SDK asks again at 2, 18, 336100, 336501 and 336502,
# and at 15, at which a second try cannot help.
CODES: Mapping[int, ErrorKind] = {
    1: ErrorKind.OVERLOADED,
    2: ErrorKind.OVERLOADED,
    3: ErrorKind.MODEL_NOT_FOUND,
    4: ErrorKind.RATE_LIMITED,
    6: ErrorKind.AUTH,
    13: ErrorKind.AUTH,
    14: ErrorKind.AUTH,
    15: ErrorKind.AUTH,
    17: ErrorKind.QUOTA,
    18: ErrorKind.RATE_LIMITED,
    19: ErrorKind.QUOTA,
    100: ErrorKind.BAD_REQUEST,
    110: ErrorKind.AUTH,
    111: ErrorKind.AUTH,
    336000: ErrorKind.OVERLOADED,
    336001: ErrorKind.BAD_REQUEST,
    336002: ErrorKind.BAD_REQUEST,
    336003: ErrorKind.BAD_REQUEST,
    336004: ErrorKind.AUTH,
    336005: ErrorKind.MODEL_NOT_FOUND,
    336100: ErrorKind.OVERLOADED,
    336101: ErrorKind.BAD_REQUEST,
    336104: ErrorKind.BAD_REQUEST,
    336105: ErrorKind.BAD_REQUEST,
    336501: ErrorKind.RATE_LIMITED,
    336502: ErrorKind.RATE_LIMITED,
    500000: ErrorKind.OVERLOADED,
}

# V2 names its errors; what is not here goes by the HTTP status.
NAMES: Mapping[str, ErrorKind] = {
    "malformed_json": ErrorKind.BAD_REQUEST,
    "invalid_argument": ErrorKind.BAD_REQUEST,
    "invalid_messages": ErrorKind.BAD_REQUEST,
    "invalid_model": ErrorKind.MODEL_NOT_FOUND,
    "characters_too_long": ErrorKind.CONTEXT_TOO_LONG,
    "tokens_too_long": ErrorKind.CONTEXT_TOO_LONG,
    "access_denied": ErrorKind.AUTH,
    "no_parameter_permission": ErrorKind.AUTH,
    "rpm_rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    "tpm_rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    "insufficient_quota": ErrorKind.QUOTA,
    "internal_error": ErrorKind.OVERLOADED,
}


def sampling_v1(sampling: Sampling, *, chats: bool) -> dict[str, Any]:
    """Temperatures are at most 1, penalties from 1 to 2; only models that continue text know top_k."""
    named = sampling.named("temperature", "top_p", repetition_penalty="penalty_score")
    named |= {} if chats else sampling.named("top_k")
    limits = {"temperature": (LEAST, 1.0), "top_p": (LEAST, 1.0), "penalty_score": (1.0, 2.0), "top_k": (1, 10**9)}
    return {name: min(max(value, limits[name][0]), limits[name][1]) for name, value in named.items()}


def sampling_v2(sampling: Sampling) -> dict[str, Any]:
    return {name: max(value, LEAST) for name, value in sampling.named("temperature", "top_p").items()}


def said_by_v1(record: Mapping[str, Any]) -> str:
    """The error a record of V1 holds; empty if none."""
    if record.get("error_code"):
        return str(record.get("error_msg") or "no text")
    return ""


def name_of(record: Mapping[str, Any]) -> str:
    """The name of an error of V2; empty if it has none."""
    error = record.get("error")
    return str(error.get("code") or "") if isinstance(error, Mapping) else ""


def kind_of(record: Mapping[str, Any]) -> ErrorKind | None:
    """What the code of an error means; None if it has none, or a name that is not known."""
    number = record.get("error_code")
    return CODES.get(number, ErrorKind.BAD_REQUEST) if isinstance(number, int) else NAMES.get(name_of(record))


def records_of(response: httpx.Response) -> AsyncGenerator[dict[str, Any], None]:
    """The records of a stream, in which an error may be a bare line of JSON in place of an event.

    Raises BackendError(PROTOCOL) and httpx's own errors. Consumers must use `contextlib.aclosing`.
    """
    return records_in(cast(httpx.Response, _Repaired(events_of(response))))


class _Repaired:
    """A response whose bare lines of JSON come as events: no line of an event begins with a brace."""

    def __init__(self, response: httpx.Response) -> None:
        self.headers = response.headers
        self._response = response

    async def aiter_text(self) -> AsyncGenerator[str, None]:
        begins, bare = True, False
        async for text in self._response.aiter_text():
            if bare or "{" in text:
                lines = re.split(r"(?<=[\r\n])", text)
                for number, line in enumerate(lines):
                    if begins and line.startswith("{"):
                        bare, lines[number] = True, f"data: {line}"
                    begins = line.endswith(("\r", "\n")) if line else begins
                    if bare and begins:
                        bare, lines[number] = False, f"{lines[number]}\n\n"
                yield "".join(lines)
            elif text:
                begins = text.endswith(("\r", "\n"))
                yield text
        if bare:
            yield "\n\n"


class Result:
    """Turns the records of a V1 answer into deltas."""

    def __init__(self) -> None:
        self.begun = False  # some text was read

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        text = record.get("result")
        if not isinstance(text, str):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no result.")
        self.begun = self.begun or bool(text)
        if not last and record.get("is_end") is not True:
            return Delta(text)
        cut = record.get("is_truncated") is True or record.get("finish_reason") == "length"
        return Delta(text, Finish.LENGTH if cut else Finish.STOP, usage_of(record))

    def ended(self, *, done: bool) -> Delta | None:
        """A stream ends with a record that says `is_end`."""
        return Delta("", Finish.STOP) if done else None


class Choice(ChoiceReader):
    """Turns the records of a V2 answer into deltas. Counts may come in a record of their own behind the last text."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = False  # some text was read
        self._finish: Finish | None = None
        self._usage: Usage | None = None

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Raises BackendError(PROTOCOL)."""
        self._usage = usage_of(record) or self._usage
        delta = super().feed(record, last=last)
        self.begun = self.begun or bool(delta.text)
        if last:
            return delta
        self._finish = delta.finish or self._finish
        return Delta(delta.text, delta.finish, self._usage) if delta.finish and self._usage else Delta(delta.text)

    def ended(self, *, done: bool) -> Delta | None:
        """`[DONE]`, or a reason before the stream ended without it."""
        return Delta("", self._finish or Finish.STOP, self._usage) if done or self._finish else None
