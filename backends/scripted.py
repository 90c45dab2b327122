"""Deltas, waits and errors from a script: a backend for tests, benchmarks and demonstrations. Needs no network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    Check,
    Delta,
    ErrorKind,
    Finish,
    Observer,
    Probe,
    Shape,
    SilentObserver,
)
from backends.settings import BackendSettings

# Text and deltas are yielded, events waited for, errors raised. CUT_OFF ends the stream without its final delta.
CUT_OFF = object()
Step = str | Delta | asyncio.Event | BackendError | object
Script = Sequence[Step]


class ScriptedBackend:
    """Answers each request with what `script` returns for it.

    Without `script`, the list `deltas` of the settings' parameters is the answer to every request. Capabilities and
    `model` may be set between requests, as real backends learn about their service.
    """

    def __init__(
        self,
        name: str = "scripted",
        settings: BackendSettings | None = None,
        observer: Observer | None = None,
        *,
        script: Callable[[BackendRequest], Script] | None = None,
        capabilities: Capabilities | None = None,
        ready: Callable[[], None] | None = None,
    ) -> None:
        settings = settings or BackendSettings(kind="scripted", model="scripted")
        self.name = name
        self.model = settings.model or "scripted"
        self.capabilities = capabilities or Capabilities(frozenset({Shape.INFILL, Shape.RAW}), remote=False)
        self.requests: list[BackendRequest] = []  # all that were begun
        self.finished = 0  # those that came to their end
        self.closed = 0  # those that were cancelled or closed before it
        self._observer = observer or SilentObserver()
        self._ready = ready
        self._script = script or (lambda request: _from(settings.parameters))

    @property
    def fingerprint(self) -> str:
        return f"scripted:{self.name}:{self.model}"

    async def prepare(self) -> None:
        if self._ready is not None:
            self._ready()

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        ended = False
        try:
            for step in self._script(request):
                if isinstance(step, BackendError):
                    ended = True
                    raise step
                if isinstance(step, asyncio.Event):
                    await step.wait()
                    continue
                if step is CUT_OFF:
                    ended = True
                    return
                delta = step if isinstance(step, Delta) else Delta(str(step))
                ended = delta.finish is not None
                yield delta
                if ended:
                    return
            ended = True
            yield Delta("", Finish.STOP)
        finally:
            self.finished += ended
            self.closed += not ended

    async def probe(self) -> Probe:
        return Probe((Check("script", ok=True, detail="nothing to reach"),))

    async def aclose(self) -> None:
        """Holds nothing."""


def _from(parameters: Any) -> Script:
    deltas = parameters.get("deltas", [])
    if not (isinstance(deltas, list | tuple) and all(isinstance(delta, str) for delta in deltas)):
        raise BackendError(ErrorKind.SETTINGS, "A scripted backend needs `deltas`, a list of texts, in its parameters.")
    return tuple(deltas)
