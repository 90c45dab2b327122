"""A language client that accounts for every byte: strict framing, one answer per request, nothing left unread."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = Path(__file__).resolve().parent / "clients"
SERVE = (sys.executable, "-m", "lsp_server", "serve")
WAIT_S = 60.0  # for anything; never reached by a passing test

Message = dict[str, Any]
_HEADER = re.compile(rb"Content-Length: (\d+)\r\n\r\n")


def frame(message: Any) -> bytes:
    body = json.dumps(message, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def client_names() -> list[str]:
    return sorted(path.stem for path in CLIENTS.glob("*.json"))


def client_params(name: str) -> dict[str, Any]:
    """The `initialize` parameters of a real editor."""
    params: dict[str, Any] = json.loads((CLIENTS / f"{name}.json").read_text(encoding="utf-8"))
    return params


class LspError(Exception):
    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.error = error


class LspClient:
    """Drives one server process. Requests of the server are answered from `answers`; everything else must be taken."""

    def __init__(
        self, process: subprocess.Popen[bytes], read: Callable[[], bytes], write: Callable[[bytes], None]
    ) -> None:
        self.process = process
        self.listening = ""  # over TCP: where
        self.disconnect: Callable[[], None] = lambda: None  # over TCP: end the connection
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.server_requests: list[Message] = []  # answered ones, in order
        self.logged: list[str] = []  # window/logMessage
        self.everything: list[Message] = []  # each message that came, in order
        self.stderr = ""  # grows until the end of the process
        self.initialized: Any = None  # the result of `initialize`
        self._read, self._write = read, write
        self._inbox: list[Message] = []  # not yet taken
        self._asked: set[Any] = set()  # requests without an answer yet
        self._broken = ""  # what was wrong with the bytes
        self._ended = False
        self._changed = threading.Condition()
        self._last_id = 0
        self._threads = [threading.Thread(target=self._receive, daemon=True)]
        if process.stderr is not None:
            self._threads.append(threading.Thread(target=self._listen, daemon=True))
        for thread in self._threads:
            thread.start()

    # Sending ----------------------------------------------------------------------------------------------------------

    def send(self, *messages: Message) -> None:
        """Send messages in one piece."""
        self.send_raw(b"".join(map(frame, messages)))

    def send_raw(self, data: bytes) -> None:
        self._write(data)

    def message(self, method: str, params: Any = None) -> Message:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    def request_message(self, method: str, params: Any = None, *, msg_id: Any = None) -> Message:
        if msg_id is None:
            self._last_id += 1
            msg_id = self._last_id
        with self._changed:
            assert msg_id not in self._asked
            self._asked.add(msg_id)
        return {"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params}

    def notify(self, method: str, params: Any = None) -> None:
        self.send(self.message(method, params))

    def request(self, method: str, params: Any = None, *, msg_id: Any = None) -> Any:
        """Send a request, return its id."""
        message = self.request_message(method, params, msg_id=msg_id)
        self.send(message)
        return message["id"]

    def call(self, method: str, params: Any = None) -> Any:
        """Send a request, wait for its result. Raises LspError."""
        return self.result(self.request(method, params))

    # Taking -----------------------------------------------------------------------------------------------------------

    def take(self, wanted: Callable[[Message], bool]) -> Message:
        """The first message not yet taken that is wanted; waits for it."""
        deadline = time.monotonic() + WAIT_S
        with self._changed:
            while True:
                for at, message in enumerate(self._inbox):
                    if wanted(message):
                        return self._inbox.pop(at)
                assert not self._ended, f"the server ended; {self._broken} not taken: {self._inbox} {self.stderr}"
                assert time.monotonic() < deadline, f"never came; not taken: {self._inbox} {self.stderr}"
                self._changed.wait(1.0)

    def result(self, msg_id: Any) -> Any:
        """The result of a request. Raises LspError."""
        message = self.take(lambda message: "method" not in message and message.get("id") == msg_id)
        if "error" in message:
            assert "result" not in message
            raise LspError(message["error"])
        return message["result"]

    def notification(self, method: str) -> Any:
        """The parameters of the next notification of this kind."""
        return self.take(lambda message: message.get("method") == method)["params"]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that a message, a line of stderr or the end of the server brings about."""
        deadline = time.monotonic() + WAIT_S
        with self._changed:
            while not condition():
                ended = not any(thread.is_alive() for thread in self._threads)  # stderr may end after stdout
                assert not ended, f"the server ended; {self._broken} {self._inbox} {self.stderr}"
                assert time.monotonic() < deadline, f"never came about; {self._inbox} {self.stderr}"
                self._changed.wait(1.0)

    # What editors do --------------------------------------------------------------------------------------------------

    def initialize(self, params: Mapping[str, Any], **changed: Any) -> Any:
        self.initialized = self.call("initialize", {**params, "processId": os.getpid(), **changed})
        self.notify("initialized", {})
        return self.initialized

    def open(self, uri: str, text: str, version: int = 1, language: str = "python") -> None:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change_message(self, uri: str, version: int, at: tuple[int, int], text: str) -> Message:
        """An insertion."""
        point = {"line": at[0], "character": at[1]}
        change = {"range": {"start": point, "end": point}, "text": text}
        document = {"uri": uri, "version": version}
        return self.message("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def change(self, uri: str, version: int, at: tuple[int, int], text: str) -> None:
        self.send(self.change_message(uri, version, at, text))

    def complete_message(self, uri: str, at: tuple[int, int], kind: int = 1, *, msg_id: Any = None) -> Message:
        """`kind` 1 is invoked (no debounce), 2 automatic."""
        position = {"line": at[0], "character": at[1]}
        params = {"textDocument": {"uri": uri}, "position": position, "context": {"triggerKind": kind}}
        return self.request_message("textDocument/inlineCompletion", params, msg_id=msg_id)

    def ask(self, uri: str, at: tuple[int, int], kind: int = 1) -> Any:
        """Ask for an inline completion, return the request's id."""
        message = self.complete_message(uri, at, kind)
        self.send(message)
        return message["id"]

    def items(self, uri: str, at: tuple[int, int], kind: int = 1) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.result(self.ask(uri, at, kind))["items"]
        return found

    def cancel(self, msg_id: Any) -> None:
        self.notify("$/cancelRequest", {"id": msg_id})

    def command(self, name: str, *arguments: Any) -> Any:
        return self.call("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    def reasons(self) -> dict[str, int]:
        """How often each reason was given, and `shown`."""
        return {reason: count for reason, count in self.command("midfill.status")["counts"].items() if count}

    def await_reasons(self, expected: dict[str, int]) -> None:
        """Ask until they are these: what was cancelled is counted when its work has ended, after its answer."""
        deadline = time.monotonic() + WAIT_S
        while (found := self.reasons()) != expected:
            assert time.monotonic() < deadline, found

    # Receiving --------------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        buffer = b""
        while True:
            match = _HEADER.match(buffer)
            if match and len(buffer) >= match.end() + int(match[1]):
                end = match.end() + int(match[1])
                self._arrived(json.loads(buffer[match.end() : end].decode("utf-8")))
                buffer = buffer[end:]
                continue
            if len(buffer) > 64 and not match:
                self._broken = f"no frame: {buffer[:200]!r}"
                break
            try:
                data = self._read()
            except OSError:  # closed by `kill`
                data = b""
            if not data:
                self._broken = f"bytes after the last frame: {buffer!r}" if buffer else ""
                break
            buffer += data
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _arrived(self, message: Message) -> None:
        answer = None
        with self._changed:
            self.everything.append(message)
            method = message.get("method")
            if method is None:
                if message.get("id") in self._asked:
                    self._asked.discard(message["id"])
                elif message.get("id") is not None:
                    self._broken = f"an answer to no request: {message}"
                self._inbox.append(message)
            elif "id" in message and method in self.answers:
                self.server_requests.append(message)
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": self.answers[method](message["params"])}
            elif method == "window/logMessage":
                self.logged.append(message["params"]["message"])
            else:
                self._inbox.append(message)
            self._changed.notify_all()
        if answer is not None:
            self.send(answer)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.stderr += line.decode("utf-8", "replace")
                self._changed.notify_all()

    # The end ----------------------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """End as an editor does, then check that everything is accounted for."""
        assert self.call("shutdown") is None
        self.notify("exit")
        assert self.wait() == 0
        self.check()

    def wait(self) -> int:
        """Wait for the end of the process and of its output, return the exit code."""
        code = self.process.wait(WAIT_S)
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive(), "a child of the server still holds its output"
        return code

    def check(self) -> None:
        assert self._broken == ""
        assert self._inbox == [], f"not taken: {self._inbox}"
        assert self._asked == set(), f"not answered: {self._asked}"

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for thread in self._threads:
            thread.join(WAIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):  # unsent bytes
                    stream.close()


def start(
    *arguments: str, environ: Mapping[str, str] | None = None, command: Sequence[str] = SERVE
) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})}
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, *arguments], stdin=pipe, stdout=pipe, stderr=pipe, env=env)


@contextlib.contextmanager
def stdio_server(
    *arguments: str, environ: Mapping[str, str] | None = None, command: Sequence[str] = SERVE
) -> Iterator[LspClient]:
    """A server over stdio. Leaving checks nothing: call `shut_down` first, or `wait` and `check`."""
    process = start(*arguments, environ=environ, command=command)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    client = LspClient(process, lambda: os.read(stdout.fileno(), 1 << 16), lambda data: write(stdin, data))
    try:
        yield client
    finally:
        client.kill()


def write(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)
    stream.flush()


@contextlib.contextmanager
def tcp_server(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[LspClient]:
    """The same over TCP. Descriptors 0 to 2 of the server carry nothing but its stderr."""
    process = start("--tcp", "127.0.0.1:0", *arguments, environ=environ)
    assert process.stderr is not None
    port = 0
    while not port:
        line = process.stderr.readline()
        assert line, "the server ended"
        found = re.search(rb"listens on 127\.0\.0\.1:(\d+)", line)
        port = int(found[1]) if found else 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = LspClient(process, lambda: connection.recv(1 << 16), connection.sendall)
        client.listening = f"127.0.0.1:{port}"
        client.disconnect = lambda: connection.shutdown(socket.SHUT_RDWR)
        try:
            yield client
        finally:
            client.kill()
