"""Why a request is not answered, whatever the API. Must not know how an API words it."""

from __future__ import annotations

import enum

from backends.base import BackendError, ErrorKind


class Cause(enum.Enum):
    """The value is the usual HTTP status; an API may use another one."""

    MALFORMED = (400, "malformed")  # the body is no JSON object
    FIELD = (400, "field")  # a field is missing, of a wrong type or out of range
    INFILL = (400, "infill")  # the model cannot infill
    UNAUTHORIZED = (401, "unauthorized")
    FORBIDDEN = (403, "forbidden")
    MODEL = (404, "model")  # there is no such model here
    SLOW = (408, "slow")  # the body did not come in time
    TOO_LARGE = (413, "too large")
    BACKEND = (502, "backend")  # what is asked for the answer has failed
    BUSY = (503, "busy")

    @property
    def status(self) -> int:
        return self.value[0]


class Refusal(Exception):  # noqa: N818 - an answer, not an error of the program
    """`message` is for the client: no key, no source text, nothing of the network behind the gateway.

    `field` is the way to the field that is wrong. `status` wins over what an API has for the cause.
    """

    def __init__(
        self,
        cause: Cause,
        message: str,
        *,
        field: tuple[str, ...] = (),
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.message = message
        self.field = field
        self.status = status
        self.retry_after_s = retry_after_s


# Left alone for so long if the backend does not say how long, seconds.
_PAUSE_S = 2.0

_STATUSES = {
    ErrorKind.RATE_LIMITED: 429,
    ErrorKind.OVERLOADED: 503,
    ErrorKind.BREAKER_OPEN: 503,
    ErrorKind.BAD_REQUEST: 400,
    ErrorKind.CONTEXT_TOO_LONG: 400,
    ErrorKind.TIMEOUT: 504,
}
_AGAIN = frozenset({429, 503})


def refusal_of(error: BackendError) -> Refusal:
    """What a client hears of a failure. Its message stays in the log: it names services and settings behind us."""
    if error.kind in (ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED):
        return Refusal(Cause.INFILL, "This model does not support infilling.")
    status = _STATUSES.get(error.kind, 502)
    pause = max(1.0, error.retry_after_s or _PAUSE_S) if status in _AGAIN else None
    if error.kind is ErrorKind.CONTEXT_TOO_LONG:
        message = "The prompt is too long for the model."
    else:
        message = f"The model's backend failed ({error.kind.value}); the gateway's log tells more."
    return Refusal(Cause.BACKEND, message, status=status, retry_after_s=pause)
