"""The worker's loop: JSON lines in on stdin, JSON lines out on a private copy of stdout. Knows no prompt and no token.

One object a line, UTF-8. In: {"id", "op": "load" | "generate" | "cancel", ...}; a cancel names the request by its id,
and ids grow. Out, with the id of what they belong to: {"progress"}, {"text"}, and last {"done", ...} or
{"error", "message"}. A request with "debug" is told {"evaluated"} after each batch of its prompt, and its tokens.
The process ends when its stdin closes, whatever it is doing.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from backends.llama_worker.errors import WorkerError

if TYPE_CHECKING:  # imported when a model is loaded: they need what the extra `local` installs
    from backends.llama_worker.generation import Report
    from backends.llama_worker.library import AbortFlag, Context

PROGRESS_STEP = 0.02


def take_stdout() -> BinaryIO:
    """A private descriptor for the protocol; from now on all that is printed, by C code too, goes to stderr."""
    protocol = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return protocol


class Inbox:
    """Requests from the parent, read by a thread of its own so that a cancel arrives while the model computes."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancelled = -1  # this id and all before it
        self._running = -1
        self._flag: AbortFlag | None = None

    def read(self) -> None:
        with os.fdopen(0, "rb", closefd=False) as stdin:
            for line in stdin:
                message = json.loads(line)
                if message["op"] == "cancel":
                    self._cancel(message["id"])
                else:
                    self.requests.put(message)
        os._exit(0)  # the parent is gone; the main thread may be deep in llama.cpp

    def _cancel(self, request: int) -> None:
        with self._lock:
            self._cancelled = max(self._cancelled, request)
            if self._flag is not None and self._running <= self._cancelled:
                self._flag.set()

    def begin(self, request: int, flag: AbortFlag) -> None:
        """From now on a cancel of `request` sets `flag`; at once if it came before."""
        with self._lock:
            self._running, self._flag = request, flag
            flag.clear()
            if request <= self._cancelled:
                flag.set()


class Worker:
    def __init__(self, protocol: BinaryIO, inbox: Inbox) -> None:
        self._protocol = protocol
        self._inbox = inbox
        self._context: Context | None = None

    def run(self) -> None:
        while True:
            message = self._inbox.requests.get()
            try:
                if message["op"] == "load":
                    self._load(message)
                else:
                    self._generate(message)
            except WorkerError as error:
                self._send(message["id"], error=error.kind, message=str(error))

    def _send(self, request: int, **fields: Any) -> None:
        self._protocol.write(json.dumps({"id": request, **fields}).encode() + b"\n")
        self._protocol.flush()

    def _load(self, message: Mapping[str, Any]) -> None:
        shown = -1.0

        def progress(fraction: float) -> None:
            nonlocal shown
            if fraction >= shown + PROGRESS_STEP:
                shown = fraction
                self._send(message["id"], progress=round(fraction, 2))

        sizes = {name: message[name] for name in ("context_tokens", "threads", "gpu_layers")}
        try:
            from backends.llama_worker.library import Context, Library

            library = Library()
        except ImportError as error:
            from backends.embedded import ENGINE, INSTALL

            raise WorkerError("settings", f"{ENGINE} cannot be used ({error}). {INSTALL}") from error
        self._context = Context(library, message["path"], progress, **sizes)
        fim = self._context.vocabulary.fim
        self._send(
            message["id"],
            done="loaded",
            context_tokens=self._context.size,
            infill=fim.infill,
            extra_files=fim.infill and fim.sep is not None,
        )

    def _generate(self, message: Mapping[str, Any]) -> None:
        context = self._context
        if context is None:
            raise WorkerError("bad-model", "no model is loaded")
        from backends.llama_worker.generation import Report, generate

        request, debug = message["id"], message.get("debug", False)
        self._inbox.begin(request, context.abort)
        report = Report()
        for text in generate(context, message, report):
            if text:
                self._send(request, text=text, **_counts(report))
            elif debug:
                self._send(request, evaluated=len(context.held))
        details = {"tokens": list(report.prompt), "aborted": context.aborted} if debug else {}
        self._send(
            request,
            done=report.finish,
            **_counts(report),
            held_tokens=len(context.held),
            **details,
        )


def _counts(report: Report) -> dict[str, int]:
    """With each text too: a reader that stops early knows them."""
    return {
        "prompt_tokens": len(report.prompt),
        "reused_tokens": report.reused,
        "generated_tokens": report.generated,
    }


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    sys.stdout.flush()
    protocol = take_stdout()
    inbox = Inbox()
    threading.Thread(target=inbox.read, name="inbox", daemon=True).start()
    Worker(protocol, inbox).run()
