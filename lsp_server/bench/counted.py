"""A midfill server that counts what its local model is asked: `python -m lsp_server.bench.counted FILE serve …`.

Writes a line of JSON to FILE as each request to the model begins and ends, be it a suggestion, a speculation or a
prompt that is evaluated ahead; these are left out with the environment variable below. All else is as in
`midfill serve`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from backends._llama_process import LlamaProcess, Question
from backends.base import BackendRequest, Delta
from backends.llama_cpp import LlamaCppBackend
from lsp_server import cli

NOTHING_AHEAD = "BENCH_NOTHING_AHEAD"
Write = Callable[[Mapping[str, Any]], None]


def ended(reply: Mapping[str, Any], *, ahead: bool) -> dict[str, Any]:
    """What the last reply to a request says. Tokens that a cancelled one evaluated of its prompt are counted, too."""
    held = min(reply["held_tokens"], reply["prompt_tokens"])
    cancelled = reply["done"] == "cancelled" and not reply["generated_tokens"]
    evaluated = max(0, held - reply["reused_tokens"])
    return {"event": "ended", "ahead": ahead, "cancelled": cancelled, "evaluated": evaluated}


def watch(write: Write) -> None:
    """From now on all that is asked of local models in this process is told to `write`."""
    ask, deliver, stream = LlamaProcess.ask, LlamaProcess._deliver, LlamaCppBackend.stream
    running: dict[int, bool] = {}  # whether ahead

    def asked(process: LlamaProcess, operation: str, **fields: Any) -> Question:
        question = ask(process, operation, **fields)
        if operation == "generate":
            ahead = running[question.number] = fields["max_tokens"] == 0
            write({"event": "begun", "ahead": ahead})
        return question

    def delivered(process: LlamaProcess, reply: dict[str, Any]) -> None:
        if "done" in reply and (ahead := running.pop(reply["id"], None)) is not None:
            write(ended(reply, ahead=ahead))
        deliver(process, reply)

    def streamed(backend: LlamaCppBackend, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        if request.max_tokens == 0 and os.environ.get(NOTHING_AHEAD):
            return _nothing()
        return stream(backend, request)

    for owner, name, function in (
        (LlamaProcess, "ask", asked),
        (LlamaProcess, "_deliver", delivered),
        (LlamaCppBackend, "stream", streamed),
    ):
        setattr(owner, name, function)


async def _nothing() -> AsyncGenerator[Delta, None]:
    nothing: tuple[Delta, ...] = ()
    for delta in nothing:
        yield delta


def main() -> int:
    path, *arguments = sys.argv[1:]
    with open(path, "a", encoding="utf-8", buffering=1) as file:
        watch(lambda record: _write_line(file.write, record))
        return cli.run(arguments)


def _write_line(write: Callable[[str], object], record: Mapping[str, Any]) -> None:
    write(json.dumps(record) + "\n")


if __name__ == "__main__":
    sys.exit(main())
