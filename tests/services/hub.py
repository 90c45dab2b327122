"""A Hugging Face hub on loopback: `/{owner}/{repository}/resolve/{revision}/{file}`, and the storage it leads to.

What a client sees is worded as the hub words it (X-Repo-Commit, X-Linked-Etag, X-Error-Code …). The storage is reached
under another host name, so that a client which carries its token along is caught: `seen` of it has the header.

    with Hub() as hub:
        hub.files["me/models/m.gguf"] = content
        hub.faults = [Fault(after=1000)]  # of the next transfers, one each
        … HF_ENDPOINT = hub.url …
        hub.transfers  # the requests at the storage
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.services.common import LoopbackService, Seen

COMMIT = "0123456789abcdef0123456789abcdef01234567"
PIECE = 1 << 16  # bytes sent at once


@dataclass(frozen=True)
class Fault:
    """What one transfer does instead of going well."""

    after: int | None = None  # bytes after which the connection ends, or nothing more comes
    hold: bool = False  # after that nothing comes until `release()`
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()  # with that status
    ignores_range: bool = False
    garble: bool = False  # the last byte is another one


class Hub(LoopbackService):
    """`storage` False: the hub serves the files itself, as it does small ones. `login`: the token that is accepted."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(port=port)
        self.files: dict[str, bytes] = {}  # "owner/repository/file"
        self.faults: list[Fault] = []
        self.gated: set[str] = set()  # repositories whose licence the holder of `login` alone accepted
        self.moved: dict[str, str] = {}  # old name of a repository -> new one
        self.login = ""
        self.storage = True
        self.head: Fault = Fault()  # what the hub does when asked about a file: status and headers
        self.claims: dict[str, str] = {}  # headers in place of the right ones; "" for none

    @property
    def transfers(self) -> list[Seen]:
        return [seen for seen in self.log if seen.path.startswith("/storage/")]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/{owner}/{name}/resolve/{revision}/{file:path}", self._resolve, methods=["GET", "HEAD"]),
            Route("/storage/{file:path}", self._store, methods=["GET"]),
            Route("/{rest:path}", self._unknown, methods=["GET", "HEAD", "POST"]),
        ]

    async def _unknown(self, request: Request) -> Response:
        await self.note(request)  # clients that ask for more than they need are seen
        return Response("", 404)

    async def _resolve(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        repo = f"{request.path_params['owner']}/{request.path_params['name']}"
        file = f"{repo}/{request.path_params['file']}"
        if repo in self.moved:
            return Response(status_code=307, headers={"location": seen.path.replace(repo, self.moved[repo])})
        if self.head.status != 200:
            return Response("", self.head.status, dict(self.head.headers))
        if refusal := self._refusal(seen, repo, file, request.path_params["revision"]):
            return refusal
        content = self.files[file]
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        linked = {"x-linked-etag": etag, "x-linked-size": str(len(content))} if self.storage else {"etag": etag}
        headers = {"x-repo-commit": COMMIT, **linked, **self.claims}
        headers = {name: value for name, value in headers.items() if value}
        if self.storage:  # the storage's address holds what opens it
            location = f"http://localhost:{self.port}/storage/{file}?signature=1"
            return Response("Found.", 302, {**headers, "location": location})
        if request.method == "HEAD":
            return Response("", 200, {"content-length": str(len(content)), **headers})
        return self._send(seen, content, headers)

    def _refusal(self, seen: Seen, repo: str, file: str, revision: str) -> Response | None:
        token = seen.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token != self.login:
            return _error(401, "", "Invalid credentials in Authorization header")
        if not any(name.startswith(f"{repo}/") for name in self.files):
            return _error(404 if token else 401, "RepoNotFound", "Repository not found")
        if repo in self.gated and not token:
            return _error(401, "GatedRepo", f"Access to model {repo} is restricted.")
        if revision not in ("main", "v1", COMMIT):
            return _error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if file not in self.files:
            return _error(404, "EntryNotFound", "Entry not found", commit=COMMIT)
        return None

    async def _store(self, request: Request) -> ASGIApp:
        seen = await self.note(request)
        return self._send(seen, self.files[request.path_params["file"]], {})

    def _send(self, seen: Seen, content: bytes, headers: dict[str, str]) -> ASGIApp:
        fault = self.faults.pop(0) if self.faults else Fault()
        if fault.status != 200:
            return Response("", fault.status, dict(fault.headers))
        start, status = 0, 200
        if (asked := seen.headers.get("range")) and not fault.ignores_range:
            start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            if start >= len(content):
                return Response("", 416, {"content-range": f"bytes */{len(content)}"})
            headers = {**headers, "content-range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        if fault.garble:
            content = content[:-1] + bytes([content[-1] ^ 1])
        return _Transfer(self, seen, content[start:], status, headers, fault)


class _Transfer:
    def __init__(
        self, hub: Hub, seen: Seen, content: bytes, status: int, headers: dict[str, str], fault: Fault
    ) -> None:
        self._hub, self._seen, self._content, self._status = hub, seen, content, status
        self._headers, self._fault = headers, fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {**self._headers, "content-length": str(len(self._content))}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self._status, "headers": raw})
        after = self._fault.after
        whole = self._content if after is None else self._content[:after]
        for at in range(0, len(whole), PIECE):
            await send({"type": "http.response.body", "body": whole[at : at + PIECE], "more_body": True})
        self._hub.mark(self._seen, "generating")
        if self._fault.hold:
            await self._hub.hold()
        if after is None:
            await send({"type": "http.response.body", "body": b""})
            self._hub.mark(self._seen, "answered")
        else:  # what is sent arrives, then the end: the server closes a connection whose answer is too short
            scope["transport"].close()


def _error(status: int, code: str, message: str, commit: str = "") -> Response:
    headers = {"x-error-code": code, "x-error-message": message, "x-repo-commit": commit}
    return JSONResponse({"error": message}, status, {name: value for name, value in headers.items() if value})
