"""Whose request is computed next: one batch of a prompt or one token at a time, so that nobody waits for another's end.

Knows no model: a request is an iterator that may be left alone between any two steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from backends.llama_worker.peers import Flag, Hub, Request

Begin = Callable[[Request], Iterator[None]]


@dataclass(slots=True)
class _Job:
    request: Request
    steps: Iterator[None]


class Turns:
    """`begin` makes the steps of a request. `flag` stops the step that is being computed."""

    def __init__(self, hub: Hub, begin: Begin, flag: Callable[[], Flag | None]) -> None:
        self._hub = hub
        self._begin = begin
        self._flag = flag
        self._jobs: list[_Job] = []
        self.idle_since = time.monotonic()  # seconds; of the last step

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def run_once(self, timeout: float | None) -> None:
        """Take in what came, waiting at most `timeout` seconds if there is nothing to compute, and compute one step."""
        request = self._hub.take(0 if self._jobs else timeout)
        while request is not None:
            self._add(request)
            request = self._hub.take(0)
        if self._jobs:
            # Who had least comes next. A prompt's batch takes as long as many tokens: they are not counted as equals.
            self._step(min(self._jobs, key=lambda job: job.request.peer.used))
            self.idle_since = time.monotonic()

    def _add(self, request: Request) -> None:
        others = [job.request.peer.used for job in self._jobs]
        if others:  # who has asked for nothing for long has not saved anything
            request.peer.used = max(request.peer.used, min(others))
        self._jobs.append(_Job(request, self._begin(request)))

    def _step(self, job: _Job) -> None:
        began = time.monotonic()
        flag = self._flag()
        if flag is not None:
            self._hub.begin(job.request, flag)
        try:
            next(job.steps)
        except StopIteration:
            self._jobs.remove(job)
        finally:
            self._hub.end()
            job.request.peer.used += time.monotonic() - began
