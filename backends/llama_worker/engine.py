"""A loaded model that answers requests: fields of messages in, fields of replies out. Knows no pipe and no peer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from backends.llama_worker.context import Context
from backends.llama_worker.generation import Report, generate
from backends.llama_worker.library import AbortFlag, Library
from backends.llama_worker.sequences import Sequences
from backends.llama_worker.writing import Texts

SEND_S = 0.02  # text is told at most this often, except the first and what ends a line; seconds

Fields = Mapping[str, Any]


class Engine:
    def __init__(self, path: str, progress: Callable[[float], None], **sizes: Any) -> None:
        """`sizes`: context_tokens, threads, gpu_layers, kv_type. Raises WorkerError, ImportError."""
        self._context = Context(Library(), path, progress, **sizes)
        self._context.vocabulary.read()
        self._sequences = Sequences(self._context)

    @property
    def abort(self) -> AbortFlag:
        """Ends the step that is being computed, and with it the request."""
        return self._context.abort

    @property
    def facts(self) -> Fields:
        fim = self._context.vocabulary.fim
        return {
            "context_tokens": self._context.size,
            "infill": fim.infill,
            "extra_files": fim.infill and fim.sep is not None,
        }

    def answer(self, request: Fields) -> Iterator[Fields]:
        """What to reply after each step: nothing, text, and at last "done". Raises WorkerError.

        Between two steps others may be answered.
        """
        report, outlet, debug = Report(), _Outlet(), request.get("debug", False)
        for texts in generate(self._context, self._sequences, request, report):
            replies = outlet.add(texts)
            if not texts and debug:
                yield {"evaluated": report.held}
            yield from ({"text": text, "index": index, **_counts(report)} for index, text in replies)
            if not replies:
                yield {}
        yield from ({"text": text, "index": index, **_counts(report)} for index, text in outlet.rest())
        details = {"tokens": list(report.prompt), "aborted": self._context.aborted} if debug else {}
        yield {"done": report.finish, **_counts(report), "held_tokens": report.held, **details}


class _Outlet:
    """Joins text that comes faster than anyone reads. The first goes out at once, and what ends a line."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._told = 0.0  # when, by the monotonic clock

    def add(self, texts: Texts) -> Texts:
        """What to tell now."""
        line_ends = False
        for index, text in texts:
            if text:
                self._texts[index] = self._texts.get(index, "") + text
                line_ends = line_ends or "\n" in text
        if not self._texts or not (line_ends or time.monotonic() - self._told >= SEND_S):
            return ()
        return self.rest()

    def rest(self) -> Texts:
        told = tuple(self._texts.items())
        self._texts.clear()
        self._told = time.monotonic()
        return told


def _counts(report: Report) -> Fields:
    """With each text too: a reader that stops early knows them."""
    return {
        "prompt_tokens": len(report.prompt),
        "reused_tokens": report.reused,
        "generated_tokens": report.generated,
    }
