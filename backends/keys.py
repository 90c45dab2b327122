"""API keys: where they come from and how they stay hidden. Knows no service and no HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import threading
from dataclasses import dataclass
from pathlib import PurePath

from backends.base import BackendError, ErrorKind
from backends.plain import plain
from backends.settings import BackendSettings

COMMAND_TIMEOUT_S = 60.0  # long enough to type a passphrase
_PRINTABLE = re.compile("[!-~]+")  # what a header can hold, without blanks
MOST_OUTPUT = 16 * 1024  # bytes; no key is so long
LEFT_OUTPUT_S = 0.5  # until the last bytes of a command that has ended were read
RETRY_S = 30.0  # a failed command is not run again, and a refused key not resolved again, sooner than this


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A secret and a description of its source that may be shown."""

    value: str
    source: str

    def __repr__(self) -> str:
        return f"Key(<hidden>, source={self.source!r})"


def resolve_key(settings: BackendSettings) -> Key | None:
    """Read the key from `key_env` or, where that is unset, from `key_command`. None if neither is configured.

    Blocks while the command runs, at most `COMMAND_TIMEOUT_S`. Raises BackendError(SETTINGS).
    """
    name = settings.key_env
    if name and (os.environ.get(name, "").strip() or not settings.key_command):
        return read_variable(name, "the API key (key_env)")
    if settings.key_command:
        return _from_command(settings.key_command)
    return None


def read_variable(name: str, meaning: str) -> Key:
    """Read a key from an environment variable; `meaning` says what it should hold. Raises BackendError(SETTINGS)."""
    source = f"environment variable {name}"
    value = os.environ.get(name, "")
    if not value.strip():
        raise BackendError(ErrorKind.SETTINGS, f"The {source} is not set: it should hold {meaning}.")
    return checked_key(value, source)


def _from_command(command: tuple[str, ...]) -> Key:
    # Only the program's name is shown: arguments may be private.
    source = f"key_command {plain(PurePath(command[0]).name)!r}"
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,  # the server's own stdin carries JSON-RPC
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise BackendError(ErrorKind.SETTINGS, f"{source} cannot be run: {why}.") from None
    output = _Output(process)
    try:
        code = process.wait(COMMAND_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        hint = "Run it in a terminal: nobody sees what it asks here."
        message = f"{source} did not end within {COMMAND_TIMEOUT_S:g} s. {hint}"
        raise BackendError(ErrorKind.SETTINGS, message) from None
    text = output.text()
    if len(text) > MOST_OUTPUT:
        raise BackendError(ErrorKind.SETTINGS, f"{source} must print the key alone; it printed far more.")
    if code != 0:
        raise BackendError(ErrorKind.SETTINGS, f"{source} failed with exit code {code}; run it in a terminal.")
    if "\n" in text.strip():
        lines = text.strip().count("\n") + 1
        raise BackendError(ErrorKind.SETTINGS, f"{source} must print the key alone; it printed {lines} lines.")
    return checked_key(text, source)


class _Output:
    """What a command prints, read in a daemon thread: whoever it left running may keep its output open for hours.

    A command that prints more than `MOST_OUTPUT` is killed.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._parts: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True, name="midfill-key-output")
        self._thread.start()

    def text(self) -> str:
        """All that came, once the command has ended."""
        self._thread.join(LEFT_OUTPUT_S)
        return b"".join(self._parts).decode("utf-8", "replace")

    def _run(self) -> None:
        assert self._process.stdout is not None
        size = 0
        with self._process.stdout as pipe:
            while size <= MOST_OUTPUT and (part := os.read(pipe.fileno(), MOST_OUTPUT)):
                self._parts.append(part)
                size += len(part)
        if size > MOST_OUTPUT:
            self._process.kill()


def checked_key(value: str, source: str) -> Key:
    """Raises BackendError(SETTINGS) for what cannot be a key."""
    value = value.strip()
    if not value:
        raise BackendError(ErrorKind.SETTINGS, f"{source} gave an empty API key.")
    if not _PRINTABLE.fullmatch(value):
        # An HTTP library would quote the whole header in its own error.
        raise BackendError(
            ErrorKind.SETTINGS, f"The API key from {source} holds spaces, line breaks or other characters no key has."
        )
    return Key(value, source)


class KeySource:
    """One backend's key: resolved at first use, then kept; concurrent requests share one run of the command."""

    def __init__(self, settings: BackendSettings, *, given: Key | None = None) -> None:
        """`given` is a key that needs no looking up."""
        self._settings = settings
        self._given = given
        self._outcome: asyncio.Future[Key | BackendError | None] | None = None
        self._since = 0.0  # when the outcome was asked for, then when it came; seconds of the loop's clock

    async def get(self) -> Key | None:
        """Raises BackendError(SETTINGS). A cancelled caller does not stop the command: the next request has its key."""
        if self._given is not None:
            return self._given
        if not self._settings.key_command:
            return resolve_key(self._settings)
        now = asyncio.get_running_loop().time()
        if self._outcome is None or (
            self._outcome.done() and isinstance(self._outcome.result(), BackendError) and now - self._since > RETRY_S
        ):
            self._since = now
            self._outcome = _in_thread(self._settings)
            self._outcome.add_done_callback(self._ended)
        await asyncio.wait({self._outcome})
        outcome = self._outcome.result()
        if isinstance(outcome, BackendError):
            raise BackendError(outcome.kind, outcome.message)
        return outcome

    def _ended(self, outcome: asyncio.Future[Key | BackendError | None]) -> None:
        self._since = outcome.get_loop().time()  # a command may take longer than the pause after it

    def refused(self) -> None:
        """The service did not take the key: commands that print short-lived tokens are asked again next time."""
        if self._outcome is not None and asyncio.get_running_loop().time() - self._since > RETRY_S:
            self._outcome = None


def _in_thread(settings: BackendSettings) -> asyncio.Future[Key | BackendError | None]:
    """Resolve in a daemon thread: unlike the loop's own executor it never keeps the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Key | BackendError | None] = loop.create_future()

    def run() -> None:
        outcome: Key | BackendError | None
        try:
            outcome = resolve_key(settings)
        except BackendError as error:
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(future.set_result, outcome)

    threading.Thread(target=run, daemon=True, name="midfill-key").start()
    return future
