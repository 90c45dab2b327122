"""What happened to each request, and when. Holds no source text unless told to. Must not know the pipeline."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from backends.base import Prompt, Usage
from completion.clock import Clock
from completion.privacy import StandIn
from completion.types import Completion, ContextPiece, DocumentSnapshot, Outcome, Reason, Window

SHOWN = "shown"

# Documents whose last request is remembered, and requests remembered in all.
_DOCUMENTS = 200
_RECENT = 50
_SENT = 10  # of which it is remembered what was sent
_SECRETS = 1000  # kept out of written answers

# New in each process, so that a trace does not tell which files it speaks of.
_SALT = os.urandom(16)


@dataclass(frozen=True, slots=True)
class Sent:
    """What a backend was asked. `stand_ins` stand in the prompt for secrets."""

    prompt: Prompt = field(repr=False)
    document: DocumentSnapshot = field(repr=False)
    window: Window = field(repr=False)
    stand_ins: tuple[StandIn, ...] = ()


class RequestTrace:
    """The record of one request. Times are milliseconds since it was received; None: not reached."""

    __slots__ = (
        "_clock",
        "answer",
        "answered",
        "backend",
        "cache",
        "debounced",
        "detail",
        "dispatched",
        "failures",
        "family",
        "files",
        "filters",
        "first_delta",
        "generated_tokens",
        "id",
        "last_delta",
        "pieces",
        "prompt",
        "prompt_tokens",
        "reason",
        "received",
        "reused_tokens",
        "saved_tokens",
        "sent",
        "shape",
        "text",
        "uri_hash",
    )

    def __init__(self, request_id: str, uri_hash: str, clock: Clock, received: float, *, text: bool = False) -> None:
        self.id = request_id
        self.uri_hash = uri_hash
        self.received = received  # seconds of the clock
        self.text = text  # whether `prompt` and `answer` are to be filled in
        self.cache = "miss"  # "miss", "typed-through", "joined" or "hit"
        self.reason = ""  # "shown" or a Reason
        self.detail: str | None = None  # more about the reason, such as a backend's error
        self.files: tuple[str, ...] = ()  # paths of the other files in the prompt; never written
        self.pieces: tuple[ContextPiece, ...] = ()  # the same with where they come from; never written
        self.sent: Sent | None = None  # kept for the last requests alone; never written
        self.filters: tuple[str, ...] = ()  # what stopped, changed or silenced the answer, in this order
        self.backend: str | None = None  # that gave the answer, or was asked last
        self.failures: list[str] = []  # "name:kind" of each backend that was asked before
        self.shape: str | None = None  # of the prompt that was sent, and the family it was formed for
        self.family: str | None = None
        self.debounced: float | None = None
        self.dispatched: float | None = None
        self.first_delta: float | None = None
        self.last_delta: float | None = None
        self.answered: float | None = None
        self.prompt_tokens: int | None = None
        self.reused_tokens: int | None = None
        self.generated_tokens: int | None = None
        self.saved_tokens: int | None = None  # at most so many more would have come, had the answer not been ended
        self.prompt: str | None = None
        self.answer: str | None = None
        self._clock = clock

    def fork(self) -> RequestTrace:
        """A record of the same request for one of several backends that are asked at once; see `take`."""
        return copy.copy(self)

    def take(self, fork: RequestTrace) -> None:
        """Take over what a fork says."""
        for name in self.__slots__:
            setattr(self, name, getattr(fork, name))

    def join(self, older: RequestTrace) -> None:
        """Take over what became of an older request that answers this one, too."""
        who = ("backend", "failures")
        what = ("shape", "family", "files", "pieces", "prompt", "sent")
        for name in (*who, *what, "prompt_tokens", "reused_tokens", "generated_tokens"):
            setattr(self, name, getattr(older, name))
        earlier = (self.received - older.received) * 1000
        for name in ("first_delta", "last_delta"):
            moment = getattr(older, name)
            setattr(self, name, None if moment is None else round(max(0.0, moment - earlier), 3))

    def elapsed(self) -> float:
        return round((self._clock.now() - self.received) * 1000, 3)

    def count(self, usage: Usage) -> None:
        self.prompt_tokens = usage.prompt_tokens
        self.reused_tokens = usage.reused_tokens
        self.generated_tokens = usage.generated_tokens

    def as_json(self) -> str:
        kept = ("received", "text", "files", "pieces", "sent")
        fields = [name for name in self.__slots__ if not name.startswith("_") and name not in kept]
        texts = ("prompt", "answer")
        ordered = [
            "id",
            "uri_hash",
            "reason",
            "cache",
            *(f for f in fields if f not in ("id", "uri_hash", "reason", "cache")),
        ]
        return json.dumps({name: getattr(self, name) for name in ordered if self.text or name not in texts})


class TraceLog:
    """All requests: counts per outcome, the last ones, and a line of JSON for each.

    `write` gets one line with its line end, such as `file.write` takes.
    """

    def __init__(self, write: Callable[[str], object] | None, *, clock: Clock, text: bool = False) -> None:
        self._write = write
        self._clock = clock
        self._text = text
        self._counts: Counter[str] = Counter({SHOWN: 0, **{reason.value: 0 for reason in Reason}})
        self._last: OrderedDict[str, RequestTrace] = OrderedDict()
        self._recent: deque[RequestTrace] = deque(maxlen=_RECENT)
        self._secrets: dict[str, str] = {}  # what stood for them in prompts

    def begin(self, request_id: str, uri: str, received: float | None = None) -> RequestTrace:
        """`received` is when the request came in, seconds of the clock; now, if it is not known."""
        moment = self._clock.now() if received is None else received
        return RequestTrace(request_id, uri_hash(uri), self._clock, moment, text=self._text)

    def finish(self, trace: RequestTrace, outcome: Outcome) -> None:
        """Never raises: a full disk must not cost the user a suggestion."""
        trace.answered = trace.elapsed()
        if isinstance(outcome, Completion):
            trace.reason = SHOWN
            trace.answer = self._as_sent(trace, outcome.text) if trace.text else None
        else:
            trace.reason = outcome.reason.value
            trace.detail = outcome.detail or None
        self._counts[trace.reason] += 1
        self._recent.append(trace)
        if len(self._recent) > _SENT:
            self._recent[-1 - _SENT].sent = None
        if trace.reason != Reason.AHEAD.value:  # the user's own last request is what is asked for
            self._last[trace.uri_hash] = trace
            self._last.move_to_end(trace.uri_hash)
        if len(self._last) > _DOCUMENTS:
            self._last.popitem(last=False)
        if self._write is not None:
            try:
                self._write(trace.as_json() + "\n")
            except (OSError, ValueError):  # ValueError: the file is closed
                self._write = None

    def _as_sent(self, trace: RequestTrace, answer: str) -> str:
        """An answer with stand-ins, as in the prompts beside which it is written; cached ones have no own."""
        for each in trace.sent.stand_ins if trace.sent is not None else ():
            self._secrets[each.secret] = each.text
        while len(self._secrets) > _SECRETS:
            del self._secrets[next(iter(self._secrets))]
        for secret, text in self._secrets.items():
            answer = answer.replace(secret, text)
        return answer

    @property
    def counts(self) -> Mapping[str, int]:
        return MappingProxyType(self._counts)

    @property
    def recent(self) -> tuple[RequestTrace, ...]:
        """The last 50, oldest first."""
        return tuple(self._recent)

    def last(self, uri: str) -> RequestTrace | None:
        return self._last.get(uri_hash(uri))


def uri_hash(uri: str) -> str:
    return hashlib.blake2b(uri.encode("utf-8", "surrogatepass"), key=_SALT, digest_size=8).hexdigest()
