"""An FFM service on loopback for `midfill bench typing`, in a child process: an oracle's answers at a model's pace.

Its first token comes after a latency drawn anew for each request, the others at one pace; any number of requests at
once. Spoken to over stdin and stdout, one JSON object a line; see `children.Child`. It is its own HTTP proxy: a service
that is reached through one counts as remote, as a real one does.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import uvicorn

from lsp_server.bench.oracle import CHARACTERS, Oracle
from lsp_server.bench.recording import read
from lsp_server.bench.typist import chosen

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PATH = "/api"
ROUTE = "/models/text_infilling"
MARKER = "<FILL_ME>"


class Service:
    """`latency_ms` is the median until the first token, `spread` its deviation (of the logarithm)."""

    def __init__(self, oracle: Oracle, *, latency_ms: float, spread: float, pace_ms: float) -> None:
        self._oracle = oracle
        self._latency_ms = latency_ms
        self._spread = spread
        self._pace_ms = pace_ms
        self._draw = random.Random(1)
        self._alive = 0
        self.counts = {"begun": 0, "cancelled": 0, "most_alive": 0, "evaluated": 0}

    def reset(self) -> None:
        self.counts = dict.fromkeys(self.counts, 0)
        self.counts["most_alive"] = self._alive

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        if not scope["path"].endswith(PATH + ROUTE):
            await _respond(send, 404, b'{"detail": "not found"}')
            return
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.counts["begun"] += 1
        self._alive += 1
        self.counts["most_alive"] = max(self.counts["most_alive"], self._alive)
        answer = asyncio.ensure_future(self._answer(json.loads(body), send))
        gone = asyncio.ensure_future(receive())  # gives nothing more until the client has gone
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._alive -= 1
            for task in (answer, gone):
                task.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    async def _answer(self, asked: dict[str, Any], send: Send) -> None:
        await _begin(send, 200, b"text/event-stream")
        async for record in self._records(asked):
            data = f"data: {json.dumps(record)}\r\n\r\n".encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _records(self, asked: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        parameters = asked["parameters"]
        prefix, _, suffix = asked["inputs"].partition(MARKER)
        prompt_tokens = math.ceil((len(prefix) + len(suffix)) / CHARACTERS)
        self.counts["evaluated"] += prompt_tokens  # such services keep nothing of earlier prompts
        self.counts["cancelled"] += 1  # unless there is text
        await asyncio.sleep(self._latency_ms / 1000 * self._draw.lognormvariate(0, self._spread))
        self.counts["cancelled"] -= 1
        tokens = self._oracle.answer(
            prefix, suffix, most_tokens=parameters["max_new_tokens"], stops=parameters.get("stop_sequences", ())
        )
        for token in tokens:
            yield {"generated_text": token, "finish_reason": None}
            await asyncio.sleep(self._pace_ms / 1000)
        yield {
            "generated_text": "",
            "finish_reason": "eos_token",
            "prompt_tokens": prompt_tokens,
            "generated_tokens": len(tokens),
            "total_tokens": prompt_tokens + len(tokens),
        }


async def _begin(send: Send, status: int, kind: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})


async def _respond(send: Send, status: int, body: bytes) -> None:
    await _begin(send, status, b"application/json")
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def serve() -> None:
    asked = json.loads(await asyncio.to_thread(sys.stdin.readline))
    oracle = Oracle(chosen(read(Path(asked["recording"])), asked["keys"]), asked["hits"])
    service = Service(oracle, latency_ms=asked["latency_ms"], spread=asked["spread"], pace_ms=asked["pace_ms"])
    # asyncio sends at once (TCP_NODELAY) only where the protocol is spelt out; tokens would come 40 ms late.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    config = uvicorn.Config(service, log_config=None, access_log=False, lifespan="off", http="h11", ws="none")
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    _say({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"})
    while line := await asyncio.to_thread(sys.stdin.readline):
        _say(service.counts)
        if json.loads(line)["op"] == "reset":
            service.reset()
    server.should_exit = server.force_exit = True
    await serving


def _say(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve())
