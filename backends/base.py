"""The contract between the engine and whatever generates text: prompts, requests, deltas, errors.

Knows nothing of editors, cursors, LSP or any one service. `completion` may import this module of `backends` alone.
"""

from __future__ import annotations

import enum
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Protocol

from backends.plain import plain


class Shape(enum.Enum):
    """What a backend can be asked with."""

    INFILL = "infill"  # prefix and suffix in separate fields; the service (or the vocabulary) knows the FIM tokens
    RAW = "raw"  # one text that already holds the model's special tokens
    CHAT = "chat"  # a list of messages


@dataclass(frozen=True, slots=True)
class File:
    """Another file shown to the model. `path` is relative to the workspace root, with forward slashes."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class InfillPrompt:
    """Text on both sides of the hole. Line ends are `\\n` only. `path` and `repo` name the current file, if known."""

    prefix: str
    suffix: str
    path: str | None = None
    repo: str | None = None
    extra: tuple[File, ...] = ()  # most relevant last; empty unless `Capabilities.extra_files`
    language: str = ""  # id as LSP has it


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a raw prompt: either one special token spelt as the model family spells it, or plain text."""

    text: str
    special: bool = False


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt for plain continuation.

    Kept in pieces so that a backend with its own tokenizer maps special pieces to ids and tokenises the rest literally.
    Services that take a string send `text`; special tokens inside plain pieces have been made harmless by then (unless
    `Capabilities.literal_text`). `suffix` follows the hole and stands nowhere in the pieces: a backend may choose among
    several continuations by it.
    """

    pieces: tuple[Piece, ...]
    suffix: str = ""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Message:
    role: str  # "system", "user" or "assistant"
    content: str


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    messages: tuple[Message, ...]


Prompt = InfillPrompt | RawPrompt | ChatPrompt


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are to be chosen, as far as whoever asks has said it himself; None: not said.

    A backend leaves out what its service does not know, and takes the nearest value where the service allows less.
    """

    temperature: float | None = None  # >= 0
    top_k: int | None = None  # >= 1
    top_p: float | None = None  # 0 to 1
    seed: int | None = None  # 0 to 2**63 - 1
    repetition_penalty: float | None = None  # > 0; tokens seen before are divided by it, 1: none
    frequency_penalty: float | None = None  # -2 to 2; subtracted each time a token was written, 0: none
    presence_penalty: float | None = None  # -2 to 2; subtracted once if it was written, 0: none

    def named(self, *same: str, **others: str) -> dict[str, Any]:
        """What was said and is known to a service: by the names above, or `others` (name above = service's name)."""
        names = {name: name for name in same} | others
        return {theirs: value for ours, theirs in names.items() if (value := getattr(self, ours)) is not None}


@dataclass(frozen=True, slots=True)
class BackendRequest:
    """One question to a backend.

    `max_tokens` > 0; 0 where `Capabilities.warms`: the prompt is evaluated, so that requests like it find that done.
    `temperature` >= 0, 0 meaning greedy. `stop` holds strings at which the service may end; the
    engine cuts there itself too, so a backend that cannot send all of them sends the first ones it has room for.
    `explicit`: the user asked for it by hand; a backend that is left alone for a while is tried all the same.
    `sampling` wins over the backend's own `parameters`, which win over `temperature`. A temperature that was said is
    in both, for backends that know nothing of `sampling`. `first_line`: nothing after the first line end behind text is
    of use. `candidates` > 1: several different answers, where the backend writes them side by side for little more than
    one (`Delta.index`); others write one.
    """

    prompt: Prompt
    max_tokens: int
    temperature: float = 0.0
    stop: tuple[str, ...] = ()
    explicit: bool = False
    sampling: Sampling = Sampling()
    first_line: bool = False
    candidates: int = 1


class Finish(enum.Enum):
    STOP = "stop"  # the model ended by itself or at a stop string
    LENGTH = "length"  # max_tokens reached


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the backend reports them; None where it does not say."""

    prompt_tokens: int | None = None  # whole prompt
    reused_tokens: int | None = None  # of these, found already evaluated (KV cache)
    generated_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """The next part of an answer: of the first one, unless several were asked for. `text` may be empty.

    Exactly one delta, the last, has `finish`.
    """

    text: str
    finish: Finish | None = None
    usage: Usage | None = None
    index: int = 0


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a backend takes. May change after `prepare`, an `INFILL_UNSUPPORTED` or a `SHAPE_UNSUPPORTED` error."""

    shapes: frozenset[Shape]
    literal_text: bool = False  # user text is tokenised without looking for special tokens
    extra_files: bool = False  # `InfillPrompt.extra` is used
    prefers_template: bool = False  # a raw prompt of the family's own form is better than an infill prompt
    chats: bool = False  # whatever is asked, the answer may be worded as a chat model does: in fences, with the prefix
    context_tokens: int | None = None  # prompt and answer together; None: unknown
    remote: bool = True  # text leaves this machine
    several: bool = False  # `BackendRequest.candidates` is heeded
    warms: bool = False  # takes requests with `max_tokens` 0, which cost nothing but time of this machine


class ErrorKind(enum.Enum):
    """Why a backend failed; the engine, the retry rule and the user's message depend on it alone."""

    AUTH = "auth"
    QUOTA = "quota"
    RATE_LIMITED = "rate-limited"
    OVERLOADED = "overloaded"
    BAD_REQUEST = "bad-request"
    CONTEXT_TOO_LONG = "context-too-long"
    INFILL_UNSUPPORTED = "infill-unsupported"
    SHAPE_UNSUPPORTED = "shape-unsupported"  # no prompt of this shape is taken; the capabilities say which are
    MODEL_NOT_FOUND = "model-not-found"
    STREAM_ERROR = "stream-error"  # an error record after the stream began
    TRUNCATED = "truncated"  # the stream ended without its final record
    PROTOCOL = "protocol"  # HTML from a gateway, wrong content type, undecodable JSON
    TIMEOUT = "timeout"  # connect, first token or overall deadline
    UNREACHABLE = "unreachable"  # DNS, connection refused, TLS
    BAD_MODEL = "bad-model"  # local model file: not GGUF, damaged, too large for memory
    CRASHED = "crashed"  # the local engine's process died
    SETTINGS = "settings"  # a setting is missing or unusable, such as an unset key variable
    BREAKER_OPEN = "breaker-open"  # not asked, because it failed just before; raised by `backends.guard` alone


class BackendError(Exception):
    """The only exception a backend raises (cancellation aside).

    `message` is for the user: what happened and what to do, without keys and without source text.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        self.message = plain(message)  # a service's words may be in it
        super().__init__(self.message)
        self.kind = kind
        self.status = status
        self.retry_after_s = retry_after_s


class Observer(Protocol):
    """Where a backend tells what a user should hear. Implementations show each `key` once, and never raise."""

    def notice(self, key: str, message: str, *, warning: bool = True) -> None: ...

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        """Report long work (model load, download). `fraction` in 0..1, None if unknown; call with `done` at its end."""


class SilentObserver:
    """Drops everything; the default where nobody listens."""

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        pass

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `midfill doctor`. `detail` is for people and holds no secret.

    `warning`: it is not as it should be, but suggestions can be had all the same; `ok` is false then.
    """

    name: str
    ok: bool
    detail: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """What a backend found out about itself when asked by `midfill doctor`."""

    checks: tuple[Check, ...] = field(default=())


class Backend(Protocol):
    """A generator of text. Built by `backends.registry`; used from one event loop; `stream` calls may overlap."""

    @property
    def name(self) -> str:
        """The settings entry it was built from."""

    @property
    def model(self) -> str:
        """The model's name as the service knows it; the prompt family is guessed from it."""

    @property
    def fingerprint(self) -> str:
        """Stands for service, model and parameters in cache keys. Holds no secret."""

    @property
    def capabilities(self) -> Capabilities: ...

    async def prepare(self) -> None:
        """Make ready (load a local model, open a pool). Cheap when ready. Raises BackendError."""

    def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        """Yield deltas. Raises BackendError. Consumers must use `contextlib.aclosing`.

        Cancelling the consuming task, or closing the generator, stops the work behind it: the connection is closed, or
        the local model stops evaluating.
        """

    async def probe(self) -> Probe: ...

    async def aclose(self) -> None:
        """Free sockets and processes. Idempotent."""
