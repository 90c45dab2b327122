"""What is put around every backend: a second try where one helps, and a breaker that leaves a failing service alone.

Must not know any one service, nor what a request asks for.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager

from backends.base import Backend, BackendError, BackendRequest, Capabilities, Delta, ErrorKind, Observer, Probe
from backends.settings import BackendSettings

TRIES = 2
PAUSE_S = 0.3  # before the second try, times 0.5 to 1.5
LONGEST_PAUSE_S = 2.0  # a service that asks for more is left to the breaker: nobody waits so long for a suggestion

FAILURES = 3  # in a row open the breaker
OPEN_S, LONGEST_OPEN_S = 2.0, 60.0  # doubled with each probe that fails
LONGEST_RETRY_AFTER_S = 3600.0  # a service that says more is not believed

AGAIN = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED})
# These come back at every key until somebody changes something.
AT_ONCE = frozenset(
    {ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.MODEL_NOT_FOUND, ErrorKind.SETTINGS, ErrorKind.BAD_MODEL}
)
# The service works; the engine asks otherwise.
ANSWERS = frozenset({ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED, ErrorKind.CONTEXT_TOO_LONG})

Now = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]

_log = logging.getLogger(__name__)


class Breaker:
    """Closed, open for a while, then half open: one request, the probe, is let through and decides."""

    def __init__(self, name: str, now: Now) -> None:
        self._name = name
        self._now = now
        self._failures = 0  # in a row
        self._openings = 0  # in a row
        self._until = 0.0
        self._cause: BackendError | None = None  # why it is open
        self._probe: object | None = None

    @property
    def open(self) -> bool:
        """Whether all requests but the probe are refused."""
        return self._cause is not None

    def enter(self, *, explicit: bool) -> object | None:
        """Let a request in. Not None: it is the probe. Raises BackendError(BREAKER_OPEN)."""
        if self._cause is None:
            return None
        left = self._until - self._now()
        if not explicit and (left > 0 or self._probe is not None):
            rests = f"The backend {self._name} is not asked again for {max(left, 1):.0f} s, unless explicitly."
            message = f"{self._cause.message.rstrip()} {rests}"
            raise BackendError(ErrorKind.BREAKER_OPEN, message, status=self._cause.status, retry_after_s=max(left, 0))
        self._probe = object()
        return self._probe

    def answered(self, probe: object | None) -> bool:
        """Return whether the breaker closed. Requests from before it opened do not close it."""
        recovered = self._cause is not None
        if recovered and probe is None:
            return False
        self._failures = self._openings = 0
        self._cause = self._probe = None
        return recovered

    def failed(self, error: BackendError, probe: object | None) -> None:
        self._failures += 1
        if self._cause is not None and probe is None:
            return
        told = error.retry_after_s if error.kind in AGAIN else None
        if probe is not None or told or error.kind in AT_ONCE or self._failures >= FAILURES:
            pause = min(OPEN_S * 2**self._openings, LONGEST_OPEN_S)
            self._openings = min(self._openings + 1, 10)
            self._until = self._now() + max(pause, min(told or 0.0, LONGEST_RETRY_AFTER_S))
            self._cause, self._probe = error, None

    def leave(self, probe: object | None) -> None:
        """The request is over. A probe that was cancelled has told nothing: the next one waits a little."""
        if probe is not None and self._probe is probe:
            self._probe = None
            self._until = max(self._until, self._now() + OPEN_S)


class Guard:
    """A backend like the one inside it. Adds ErrorKind.BREAKER_OPEN to what `stream` raises.

    A request is tried again once, after a short pause with jitter, if the service was busy and has sent nothing; never
    beyond `timeout_s`, never once it was cancelled. Cancelled requests count neither as failures nor as successes.
    `now` and `sleep` take seconds; `jitter` gives 0 to 1.
    """

    def __init__(
        self,
        backend: Backend,
        settings: BackendSettings,
        observer: Observer,
        *,
        now: Now = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.inner = backend
        self._settings = settings
        self._observer = observer
        self._breaker = Breaker(backend.name, now)
        self._now = now
        self._sleep = sleep
        self._jitter = jitter

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def capabilities(self) -> Capabilities:
        return self.inner.capabilities

    @property
    def open(self) -> bool:
        """Whether requests are refused at the moment, because earlier ones failed."""
        return self._breaker.open

    async def prepare(self) -> None:
        """Does nothing while the breaker is open: `stream` decides then."""
        if self._breaker.open:
            return
        try:
            with self._sound():
                await self.inner.prepare()
        except BackendError as error:
            self._breaker.failed(error, None)
            raise

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        probe = self._breaker.enter(explicit=request.explicit)
        with_consumer = answered = False
        try:
            if probe is not None:
                with self._sound():
                    await self.inner.prepare()
            async with aclosing(self._tried(request, 1 if probe is not None else TRIES)) as deltas:
                async for delta in deltas:
                    answered = answered or bool(delta.text) or delta.finish is not None
                    with_consumer = True
                    yield delta
                    with_consumer = False
            if answered:
                self._answered(probe)
        except BackendError as error:
            if error.kind in ANSWERS:
                self._answered(probe)
            else:
                self._breaker.failed(error, probe)
            raise
        finally:
            if with_consumer and answered:  # it had enough; cancelling hits the stream while it is waited for
                self._answered(probe)
            self._breaker.leave(probe)

    async def _tried(self, request: BackendRequest, tries: int) -> AsyncGenerator[Delta, None]:
        begun = self._now()
        deadline: float | None = None  # the backend's own serves the first try
        while True:
            text = False
            try:
                async with aclosing(self.inner.stream(request)) as deltas:
                    while (delta := await self._next(deltas, begun, deadline, text=text)) is not None:
                        text = text or bool(delta.text)
                        yield delta
            except BackendError as error:
                tries -= 1
                left = begun + self._settings.timeout_s - self._now()
                pause = (error.retry_after_s or 0.0) + PAUSE_S * (0.5 + self._jitter())
                hopeless = text or error.kind not in AGAIN or tries < 1 or self._breaker.open
                if hopeless or pause > min(LONGEST_PAUSE_S, left):
                    raise
            else:
                return
            deadline = begun + self._settings.timeout_s
            await self._sleep(pause)

    async def _next(
        self, deltas: AsyncGenerator[Delta, None], begun: float, deadline: float | None, *, text: bool
    ) -> Delta | None:
        """The next delta, None at the end; in time, which pings do not prolong. Raises BackendError."""
        first_s = 0.0 if text else self._settings.first_token_timeout_s
        if first_s and (deadline is None or begun + first_s < deadline):
            limit, told = begun + first_s, f"has sent no text within {first_s:g} s (first_token_timeout_s)"
        elif deadline is not None:
            limit, told = deadline, f"did not answer within {self._settings.timeout_s:g} s (timeout_s)"
        else:
            with self._sound():
                return await anext(deltas, None)
        try:
            with self._sound(TimeoutError):
                async with asyncio.timeout(max(0.0, limit - self._now())):
                    return await anext(deltas, None)
        except TimeoutError:
            raise BackendError(ErrorKind.TIMEOUT, f"The backend {self.name} {told}.") from None

    @contextmanager
    def _sound(self, *passed: type[Exception]) -> Iterator[None]:
        """What a backend must not raise is a failure too, so that the next of a list is asked. `passed` is let by."""
        try:
            yield
        except Exception as error:
            if isinstance(error, (BackendError, *passed)):
                raise
            _log.error("bug in the backend %s", self.name, exc_info=error)
            what = f"The backend {self.name} (kind {self._settings.kind}) has a bug: {type(error).__name__}."
            raise BackendError(ErrorKind.PROTOCOL, f"{what} The log says where.") from error

    def _answered(self, probe: object | None) -> None:
        if self._breaker.answered(probe):
            message = f"The backend {self.name} answers again."
            self._observer.notice(f"answers-again:{self.name}", message, warning=False)

    async def probe(self) -> Probe:
        with self._sound():
            return await self.inner.probe()

    async def aclose(self) -> None:
        await self.inner.aclose()
