"""A real FFM service on loopback: starlette, uvicorn and sse-starlette, scripted, with a log of what it saw.

In-process: `with FfmService() as service`, then `service.url`. Elsewhere: `python -m tests.services.ffm --port 0
[--script FILE]`, which prints its base URL; `GET /__log` and `POST /__script` then do what the attributes do.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import uvicorn
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

MARKER = "<FILL_ME>"
PING_TEXT = "2023-09-26 04:25:08.978531"
RANGES: dict[str, Callable[[Any], bool]] = {
    "max_new_tokens": lambda value: type(value) is int and value > 0,
    "temperature": lambda value: value > 0,
    "top_p": lambda value: 0 < value <= 1,
    "top_k": lambda value: type(value) is int and 1 <= value <= 100,
    "frequence_penalty": lambda value: value > 0,
    "stop_sequences": lambda value: isinstance(value, list) and len(value) <= 4,
}


@dataclass(frozen=True)
class Answer:
    """What to answer. All times in ms."""

    deltas: tuple[str, ...] = ("return ", "a", " +", " b")
    finish_reason: str | None = "eos_token"
    delay_ms: float = 0.0  # before each delta
    first_delay_ms: float = 0.0  # before the first one besides
    hold_after: int | None = None  # after this many deltas nothing more comes until `release()`
    final: str = "delta"  # "delta"; "concatenation": the last record repeats all; "time": no finish_reason; "none"
    pings: str = "comment"  # "event": the old form
    ping_ms: float = 15_000.0
    status: int = 200
    detail: Any = None  # with status 200 too
    headers: dict[str, str] = field(default_factory=dict)
    stream_error: dict[str, Any] | None = None  # sent in place of the final record
    prompt_tokens: int = 21
    extra: dict[str, Any] = field(default_factory=dict)  # unknown fields of every record

    @classmethod
    def of(cls, value: dict[str, Any] | str) -> Answer:
        """From JSON: fields of this class, or the text alone."""
        if isinstance(value, str):
            return cls(deltas=tuple(value[i : i + 4] for i in range(0, len(value), 4)))
        if unknown := value.keys() - {each.name for each in dataclasses.fields(cls)}:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        return cls(**{**value, "deltas": tuple(value.get("deltas", cls.deltas))})


@dataclass
class Seen:
    """One request. Times are seconds of `time.monotonic`, which processes of one machine share on Linux."""

    path: str
    headers: dict[str, str]
    text: str  # the body as it came
    begun: float
    port: int  # of the client: the same as before if the connection is
    answered: float | None = None
    disconnected: float | None = None
    generating: bool = False  # passed all checks

    @property
    def body(self) -> Any:
        return json.loads(self.text)


def _listen(port: int) -> socket.socket:
    # asyncio sends at once (TCP_NODELAY) only where the protocol is spelt out; answers would come 40 ms late.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # there it would let two servers share a port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)
    return listening


class FfmService:
    """Serves in a thread of its own. `script` is used up answer by answer; the last one stays."""

    def __init__(
        self,
        *,
        key: str = "test-key",
        script: list[Answer] | None = None,
        infilling: tuple[str, ...] = ("qwen2.5-coder-7b-32k", "codellama-7b"),
        port: int = 0,
    ) -> None:
        self.key = key
        self.script = script or [Answer()]
        self.infilling = infilling
        self.log: list[Seen] = []
        self._changed = threading.Condition()
        self._released = False
        self._held: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._socket = _listen(port)
        self.port = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/api"
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server_of_app().run, args=([self._socket],), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(10)
        self._socket.close()

    def run(self) -> None:
        """Serve in this thread until a signal."""
        self._server_of_app().run([self._socket])

    def release(self) -> None:
        """Let held answers go on, and hold none until `reset`."""
        self._released = True
        while self._held:
            loop, event = self._held.pop()
            loop.call_soon_threadsafe(event.set)

    def counts(self) -> dict[str, int]:
        return {
            "begun": len(self.log),
            "generating": sum(seen.generating for seen in self.log),
            "answered": sum(seen.answered is not None for seen in self.log),
            "disconnected": sum(seen.disconnected is not None for seen in self.log),
        }

    async def until(self, timeout_s: float = 20.0, **least: int) -> dict[str, int]:
        """Wait until the counts are at least these, such as `until(begun=2, disconnected=1)`."""

        def reached() -> bool:
            return all(self.counts()[name] >= number for name, number in least.items())

        def wait() -> bool:
            with self._changed:
                return self._changed.wait_for(reached, timeout_s)

        if not await asyncio.to_thread(wait):
            raise TimeoutError(f"{self.counts()} did not reach {least}")
        return self.counts()

    def reset(self, *script: Answer) -> None:
        """Forget the log; go on with this script."""
        with self._changed:
            self.script = list(script) or [Answer()]
            self.log.clear()
            self._released = False

    # --- the service

    def _server_of_app(self) -> uvicorn.Server:
        app = Starlette(
            routes=[
                Route("/api/models/text_infilling", self._infill, methods=["POST"]),
                Route("/api/models/generate", self._generate, methods=["POST"]),
                Route("/__log", self._show_log, methods=["GET"]),
                Route("/__script", self._take_script, methods=["POST"]),
                Route("/__release", self._release, methods=["POST"]),
            ]
        )
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        return self._server

    async def _infill(self, request: Request) -> Response:
        seen = await self._note(request)
        body = seen.body
        if refusal := self._refused(seen, body):
            return refusal
        if body["model"] not in self.infilling:
            return self._end(seen, {"detail": f"model {body['model']} does not support text infilling"}, 400)
        if (found := body["inputs"].count(MARKER)) != 1:
            return self._end(seen, {"detail": f"inputs must hold one {MARKER}, not {found}"}, 400)
        return await self._answer(request, seen)

    async def _generate(self, request: Request) -> Response:
        seen = await self._note(request)
        if refusal := self._refused(seen, seen.body):
            return refusal
        if seen.headers.get("x-api-host") != "afs-inference":
            return self._end(seen, {"detail": "X-API-HOST is missing"}, 400)
        return await self._answer(request, seen)

    async def _note(self, request: Request) -> Seen:
        assert request.client
        seen = Seen(request.url.path, dict(request.headers), "", time.monotonic(), request.client.port)
        seen.text = (await request.body()).decode()
        with self._changed:
            self.log.append(seen)
            self._changed.notify_all()
        return seen

    def _mark(self, seen: Seen, name: str) -> None:
        with self._changed:
            if getattr(seen, name) in (None, False):
                setattr(seen, name, True if name == "generating" else time.monotonic())
            self._changed.notify_all()

    def _end(self, seen: Seen, content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
        self._mark(seen, "answered")
        return JSONResponse(content, status, headers)

    def _refused(self, seen: Seen, body: Any) -> Response | None:
        if seen.headers.get("x-api-key") != self.key:
            return self._end(seen, {"detail": "Invalid API key"}, 401)
        if not isinstance(body.get("stream", False), bool) or body.keys() - {"model", "inputs", "stream", "parameters"}:
            return self._end(seen, {"detail": [{"loc": ["body"], "msg": "wrong fields", "type": "value_error"}]}, 422)
        for name, value in body.get("parameters", {}).items():
            if name not in RANGES or not RANGES[name](value):
                problem = {"loc": ["body", "parameters", name], "msg": "not allowed", "type": "value_error"}
                return self._end(seen, {"detail": [problem]}, 422)
        return None

    async def _answer(self, request: Request, seen: Seen) -> Response:
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer.status != 200 or answer.detail is not None:
            return self._end(seen, {"detail": answer.detail}, answer.status, answer.headers)
        self._mark(seen, "generating")
        if not seen.body.get("stream", False):
            return await self._whole(request, seen, answer)

        async def gone(_: Any) -> None:
            if seen.answered is None:  # it is told of every end
                self._mark(seen, "disconnected")

        old_ping = ServerSentEvent(PING_TEXT, event="ping")
        return EventSourceResponse(
            self._events(seen, answer),
            headers=answer.headers,
            ping=answer.ping_ms / 1000,  # sse-starlette's own pings, from its own task
            ping_message_factory=(lambda: old_ping) if answer.pings == "event" else None,
            client_close_handler_callable=gone,
        )

    async def _whole(self, request: Request, seen: Seen, answer: Answer) -> Response:
        generating = asyncio.ensure_future(self._all(answer))
        leaving = asyncio.ensure_future(request.receive())  # only http.disconnect can come now
        await asyncio.wait({generating, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not generating.done():
            generating.cancel()
            self._mark(seen, "disconnected")
            return Response()
        leaving.cancel()
        return self._end(seen, self._record(answer, "".join(answer.deltas), last=True), headers=answer.headers)

    async def _all(self, answer: Answer) -> None:
        async for _ in self._texts(answer):
            pass

    async def _texts(self, answer: Answer) -> AsyncIterator[str]:
        await asyncio.sleep(answer.first_delay_ms / 1000)
        for number, text in enumerate(answer.deltas):
            if number == answer.hold_after:
                await self._hold()
            if answer.delay_ms:
                await asyncio.sleep(answer.delay_ms / 1000)
            yield text
        if answer.hold_after == len(answer.deltas):
            await self._hold()

    async def _hold(self) -> None:
        event = asyncio.Event()
        self._held.append((asyncio.get_running_loop(), event))
        if not self._released:
            await event.wait()

    async def _events(self, seen: Seen, answer: Answer) -> AsyncIterator[dict[str, str]]:
        number, last = 0, len(answer.deltas)
        async for text in self._texts(answer):
            number += 1
            ending = number == last and answer.final in ("delta", "time") and not answer.stream_error
            yield self._event(self._record(answer, text, last=ending))
        if answer.stream_error:
            yield self._event(answer.stream_error)
        elif answer.final == "concatenation":
            yield self._event(self._record(answer, "".join(answer.deltas), last=True))
        elif answer.final != "none" and not answer.deltas:
            yield self._event(self._record(answer, "", last=True))
        self._mark(seen, "answered")

    @staticmethod
    def _event(record: dict[str, Any]) -> dict[str, str]:
        return {"data": json.dumps(record, ensure_ascii=False)}

    @staticmethod
    def _record(answer: Answer, text: str, *, last: bool) -> dict[str, Any]:
        tokens = len(answer.deltas)
        return {
            "generated_text": text,
            "function_call": None,
            "details": None,
            "total_time_taken": "0.42 sec" if last else None,
            "prompt_tokens": answer.prompt_tokens if last else 0,
            "generated_tokens": tokens if last else 0,
            "total_tokens": answer.prompt_tokens + tokens if last else 0,
            "finish_reason": answer.finish_reason if last and answer.final != "time" else None,
            **answer.extra,
        }

    # --- from other processes

    async def _show_log(self, request: Request) -> Response:
        """`?begun=2&disconnected=1&wait=5` answers once these are reached, at the latest after `wait` seconds."""
        asked = {name: int(value) for name, value in request.query_params.items() if name != "wait"}
        reached = True
        try:
            await self.until(float(request.query_params.get("wait", "0")), **asked)
        except TimeoutError:
            reached = False
        requests = [dataclasses.asdict(seen) for seen in self.log]
        return JSONResponse({"reached": reached, "counts": self.counts(), "requests": requests})

    async def _take_script(self, request: Request) -> Response:
        self.reset(*map(Answer.of, await request.json()))
        return Response(status_code=204)

    async def _release(self, _: Request) -> Response:
        self.release()
        return Response(status_code=204)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.services.ffm", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="test-key")
    parser.add_argument("--text", help="answer every request with this text")
    parser.add_argument("--script", type=Path, help="JSON: a list of answers, each a text or fields of Answer")
    options = parser.parse_args(arguments)
    script = [Answer.of(options.text)] if options.text is not None else None
    if options.script:
        script = [Answer.of(value) for value in json.loads(options.script.read_text("utf-8"))]
    service = FfmService(key=options.key, script=script, port=options.port)
    print(service.url, flush=True)
    service.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
