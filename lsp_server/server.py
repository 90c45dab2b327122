"""The language server of one client: puts protocol, session and features together, and runs over stdio or TCP.

Must not know what completes code: the session asks `compose` for that when it is first needed.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from pygls.lsp.server import LanguageServer

from lsp_server import parent, transport
from lsp_server.client import Client
from lsp_server.features import lifecycle
from lsp_server.protocol import Protocol
from lsp_server.version import DISTRIBUTION, version

if TYPE_CHECKING:
    from lsp_server.options import ServeOptions
    from lsp_server.session import Session
    from lsp_server.uris import Root

logger = logging.getLogger(__name__)

END_S = 5.0  # seconds the server may take to end; then it is ended


class Server(LanguageServer):
    """Only what `initialize` needs is imported with this module; `load` brings the rest once it was answered."""

    protocol: Protocol
    session: Session  # from `load` on

    def __init__(self, options: ServeOptions) -> None:
        super().__init__(DISTRIBUTION, version(), protocol_cls=Protocol, converter_factory=lambda: None)
        self.client = Client(self.protocol)
        self.roots: list[Root] = []  # from `initialize`
        self.initial_settings: Mapping[str, Any] = {}  # initializationOptions
        self.pulls = 0  # questions for settings, see features.configuration
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._options = options
        self._loaded = False
        self._started = False
        lifecycle.register(self)
        self.protocol.on_initialized = self.load

    def load(self) -> None:
        """Open the session and register the other features."""
        from lsp_server.features import (
            commands,
            completion,
            configuration,
            documents,
            feedback,
            inline_completion,
            notebooks,
        )
        from lsp_server.session import Session

        self.session = Session(self._options, self.client, self.roots, self.initial_settings)
        for feature in (documents, inline_completion, completion, configuration, commands, feedback):
            feature.register(self)
        notebooks.register(self)  # after documents, whose way with bad messages it extends
        self._loaded = True

    def start(self) -> None:
        """Set the engine up in the background. Does so once."""
        if not self._started:
            self._started = True
            self.session.spawn(self._begin())

    async def _begin(self) -> None:
        from lsp_server.features import configuration

        await configuration.start(self)
        await self.session.until_started()
        # What was imported stays: the collector need not look through it again while somebody types.
        gc.freeze()

    def reload_settings(self) -> None:
        """Read the settings anew if they were read before."""
        if self._started:
            self.session.reload()

    def watch_parent(self, pid: Any) -> None:
        """End the server when the process ends, even if the event loop is busy then."""
        loop = asyncio.get_running_loop()

        def died() -> None:
            logger.info("the editor's process has ended")
            parent.end_within(END_S, 1)
            loop.call_soon_threadsafe(self.stop, 1)

        if type(pid) is int and not parent.watch(pid, died):  # not bool
            logger.info("process %d of the editor cannot be seen from here", pid)

    def stop(self, code: int) -> None:
        """End the server with `code`. The first call counts."""
        if not self._code.done():
            self._code.set_result(code)

    def input_ended(self) -> None:
        """The client is gone, with or without an `exit`."""
        self.stop(0 if self.protocol.shut_down else 1)

    async def until_stopped(self) -> int:
        """Wait for `stop`, free everything, return the exit code."""
        code = await self._code
        parent.end_within(END_S, code)
        self.protocol.cancel_all()
        self.protocol.shut_down = True
        if self._loaded:
            await self.session.aclose()
        return code

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log. pygls would open a message box, for some bugs at every key."""
        logger.error("%s", type(error).__name__, exc_info=error)


def serve(options: ServeOptions, stdin: BinaryIO, stdout: BinaryIO) -> int:
    """Serve one client and return the exit code. `stdin` and `stdout` are used with stdio only, see `fds`.

    Raises OSError if the TCP address cannot be used.
    """
    if not (options.verbose or options.log_file):  # editors show stderr as errors, or to nobody
        logging.getLogger().setLevel(logging.WARNING)
    for name in ("pygls", "asyncio"):  # pygls logs messages, and with them source text, at INFO
        logging.getLogger(name).setLevel(logging.WARNING)
    work = _over_tcp(options) if options.transport == "tcp" else _over_stdio(options, stdin, stdout)
    return asyncio.run(work)


async def _over_stdio(options: ServeOptions, stdin: BinaryIO, stdout: BinaryIO) -> int:
    server = Server(options)
    server.protocol.set_writer(transport.DescriptorWriter(stdout.fileno()))  # type: ignore[arg-type]
    transport.read_descriptor(stdin.fileno(), server.protocol.receive, server.input_ended)
    return await server.until_stopped()


async def _over_tcp(options: ServeOptions) -> int:
    """Serve the first client that connects; its disconnecting ends the server."""
    server = Server(options)
    taken = False

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal taken
        if taken:
            writer.close()
            return
        taken = True
        server.protocol.set_writer(transport.SocketWriter(writer))  # type: ignore[arg-type]
        try:
            await transport.read_socket(reader, server.protocol.receive)
        finally:
            server.input_ended()

    listener = await asyncio.start_server(connected, options.host, options.port)
    for socket in listener.sockets:
        address = socket.getsockname()
        sys.stderr.write(f"midfill listens on {address[0]}:{address[1]}\n")
        if not ipaddress.ip_address(address[0]).is_loopback:
            sys.stderr.write(
                "midfill: other machines can connect, without a password, and the traffic is not encrypted\n"
            )
    sys.stderr.flush()
    try:
        return await server.until_stopped()
    finally:
        listener.close()
