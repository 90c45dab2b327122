"""What all loopback services have in common: scripted answers, real HTTP on a real socket, a log of what came.

A kind's service is `tests/services/<kind with _>.py` (kind "llama-server": `llama_server.py`). The contract test
finds it by that name and wants of it:

    Service             a subclass of `LoopbackService`, built as `Service(key=…, port=…, tls=…)`, all optional
    MODEL               a name of a model that it has and that infills
    SETTINGS            fields of BackendSettings besides kind, url, model and key_env ({} for most kinds)

A subclass gives its routes and its wire form; all else is here:

    path = "/api"                       what follows the host in `.url`
    media_type = "text/event-stream"    of streams
    line_end = "\\n"                     of `event()`
    routes() -> list[BaseRoute]         endpoints `async def x(self, request: Request) -> ASGIApp`, which do
                                            seen = await self.note(request)           # logs it
                                            return self.refuse(seen, 401, "bad key")  # or
                                            return self.answer(seen, streamed=…)      # the script's next answer
    error(status, detail)               an error's body: JSON value, or str/bytes sent as they are
    whole(answer, seen)                 a whole answer: JSON value
    begin(answer, seen) -> bytes        what a stream starts with; default nothing
    part(answer, seen, text, last)      bytes of one delta; `last`: the last of a stream that ends normally
    end(answer, seen) -> bytes          the rest of a stream that ends normally; also without any deltas
    fault(answer, seen) -> bytes        `answer.stream_error` in a stream
    ping(answer) -> bytes               a keep-alive of a stream; default an SSE comment
    self.key, self.infills              what it checks; `infills` False: models refuse to infill as this kind words it

`seen.path` and `seen.body` (JSON) tell routes apart. `event(record)` and `line(record)` frame SSE and NDJSON.

In use: `with Service() as service`, `service.url`, `.port`, `.log` (list of `Seen`), `.reset(*answers)`, `.release()`,
`await service.until(begun=1, generating=1, answered=1, disconnected=1)`. From other processes: `main(Service)`, then
`GET /__log`, `POST /__script`, `POST /__release`.
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
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.services.answers import Answer, Reply, Seen, line

__all__ = ["CA", "Answer", "LoopbackService", "Seen", "line", "main"]

CERTIFICATE = Path(__file__).parent / "localhost.pem"  # for localhost and 127.0.0.1
CA = Path(__file__).parent / "localhost-ca.pem"


def listen(port: int) -> socket.socket:
    # asyncio sends at once (TCP_NODELAY) only where the protocol is spelt out; answers would come 40 ms late.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # there it would let two servers share a port
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)
    return listening


class LoopbackService:
    """Serves in a thread of its own. `script` is used up answer by answer; the last one stays."""

    path = ""
    media_type = "text/event-stream; charset=utf-8"
    line_end = "\n"

    def __init__(
        self, *, key: str = "test-key", script: list[Answer] | None = None, port: int = 0, tls: bool = False
    ) -> None:
        self.key = key
        self.script = script or [Answer()]
        self.infills = True
        self.log: list[Seen] = []
        self._changed = threading.Condition()
        self._released = False
        self._held: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._socket = listen(port)
        self._tls = tls
        self.port: int = self._socket.getsockname()[1]
        self.root = f"http{'s' if tls else ''}://127.0.0.1:{self.port}"
        self.url = self.root + self.path
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

    # --- the wire form

    def routes(self) -> list[BaseRoute]:
        raise NotImplementedError

    def error(self, status: int, detail: Any) -> Any:
        return {"detail": detail}

    def whole(self, answer: Answer, seen: Seen) -> Any:
        raise NotImplementedError

    def begin(self, answer: Answer, seen: Seen) -> bytes:
        return b""

    def part(self, answer: Answer, seen: Seen, text: str, last: bool) -> bytes:
        raise NotImplementedError(f"{type(self).__name__} does not stream")

    def end(self, answer: Answer, seen: Seen) -> bytes:
        return b""

    def fault(self, answer: Answer, seen: Seen) -> bytes:
        raise NotImplementedError(f"{type(self).__name__} has no errors in its stream")

    def ping(self, answer: Answer) -> bytes:
        named = f"event: ping{self.line_end}data: still here" if answer.pings == "event" else ": ping"
        return f"{named}{self.line_end}{self.line_end}".encode()

    def event(self, record: Any, *, field: str = "data: ") -> bytes:
        """One record, or a text as it is, as a server-sent event."""
        text = record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
        return f"{field}{text}{self.line_end}{self.line_end}".encode("utf-8", "surrogatepass")

    # --- for endpoints

    async def note(self, request: Request) -> Seen:
        assert request.client
        url = request.url
        seen = Seen(url.path, dict(request.headers), "", time.monotonic(), request.client.port, url.query)
        seen.method = request.method
        seen.text = (await request.body()).decode()
        with self._changed:
            self.log.append(seen)
            self._changed.notify_all()
        return seen

    def refuse(self, seen: Seen, status: int, detail: Any, headers: dict[str, str] | None = None) -> ASGIApp:
        """An error of the service's own, not one of the script."""
        return Reply(self, seen, Answer(status=status, detail=detail, headers=headers or {}), streamed=False)

    def answer(self, seen: Seen, *, streamed: bool) -> ASGIApp:
        """The next answer of the script."""
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return Reply(self, seen, answer, streamed=streamed)

    # --- behind it

    def mark(self, seen: Seen, name: str) -> None:
        with self._changed:
            if getattr(seen, name) in (None, False):
                setattr(seen, name, True if name == "generating" else time.monotonic())
            self._changed.notify_all()

    async def hold(self) -> None:
        event = asyncio.Event()
        self._held.append((asyncio.get_running_loop(), event))
        if not self._released:
            await event.wait()

    def _server_of_app(self) -> uvicorn.Server:
        app = Starlette(
            routes=[
                *self.routes(),
                Route("/__log", self._show_log, methods=["GET"]),
                Route("/__script", self._take_script, methods=["POST"]),
                Route("/__release", self._release, methods=["POST"]),
            ]
        )

        async def outer(scope: Scope, receive: Receive, send: Send) -> None:
            scope["transport"] = getattr(getattr(send, "__self__", None), "transport", None)  # uvicorn's, for RST
            await app(scope, receive, send)

        pem = str(CERTIFICATE) if self._tls else None
        config = uvicorn.Config(
            outer, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ssl_certfile=pem, ssl_keyfile=pem
        )
        self._server = uvicorn.Server(config)
        return self._server

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


def main(service_class: type[LoopbackService], arguments: list[str] | None = None) -> int:
    """Serve one kind for other processes; prints the base URL."""
    parser = argparse.ArgumentParser(prog=f"python -m {service_class.__module__}", description=service_class.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default="test-key")
    parser.add_argument("--text", help="answer every request with this text")
    parser.add_argument("--script", type=Path, help="JSON: a list of answers, each a text or fields of Answer")
    options = parser.parse_args(arguments)
    script = [Answer.of(options.text)] if options.text is not None else None
    if options.script:
        script = [Answer.of(value) for value in json.loads(options.script.read_text("utf-8"))]
    service = service_class(key=options.key, script=script, port=options.port)
    print(service.url, flush=True)
    service.run()
    return 0
