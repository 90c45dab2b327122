"""Every value that passes between the stages of the engine. Positions are code-point offsets.

Must not know LSP, HTTP or any setting.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Protocol

from backends.base import Finish, Usage


class Text(Protocol):
    """Immutable text that need not be one string. Offsets are code points and are clamped to the text."""

    def __len__(self) -> int: ...

    def slice(self, start: int, end: int) -> str: ...


class PlainText:
    """`Text` over one string, for callers that have one."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __len__(self) -> int:
        return len(self._text)

    def slice(self, start: int, end: int) -> str:
        return self._text[max(0, start) : max(0, end)]


@dataclass(frozen=True, slots=True)
class DocumentSnapshot:
    """A document as it was at one version.

    `path` is relative to the workspace root, with `/`, and `root` that folder's own path; None outside of any.
    `opened` is the text as it was opened, if that is known.
    """

    uri: str
    language_id: str
    version: int
    text: Text
    path: str | None = None
    root: str | None = None
    opened: Text | None = field(default=None, compare=False, repr=False)


class Trigger(enum.Enum):
    AUTOMATIC = "automatic"
    INVOKED = "invoked"


@dataclass(frozen=True, slots=True)
class Selected:
    """The entry chosen in the editor's popup menu: accepting it would put `text` in place of [start, end)."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CompletionContext:
    """What a request asks: complete `document` at `offset`, seen with `others`, most recently viewed first."""

    document: DocumentSnapshot
    offset: int
    trigger: Trigger = Trigger.AUTOMATIC
    selected: Selected | None = None
    repo: str | None = None  # name of the workspace folder
    others: tuple[DocumentSnapshot, ...] = ()
    received: float | None = None  # when the request arrived, seconds of the engine's clock
    deleted: str = ""  # what was taken away at the cursor by the last edits, if they only took away
    candidates: int = 1  # so many suggestions can be shown to choose from, if the user asks by hand


class Reason(enum.StrEnum):
    """Why there is no suggestion. One per empty answer; names are part of the interface."""

    DISABLED = "disabled"
    IGNORED_FILE = "ignored-file"
    NOT_OPEN = "not-open"
    OUTSIDE_CODE = "outside-code"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    STALE = "stale"
    NO_BACKEND = "no-backend"
    BACKEND_ERROR = "backend-error"
    BREAKER_OPEN = "breaker-open"
    TIMEOUT = "timeout"
    MID_WORD = "mid-word"
    DELETION = "deletion"
    AHEAD = "ahead"
    GENERATED = "generated"
    PROSE = "prose"
    EMPTY = "empty"
    DUPLICATE_OF_SUFFIX = "duplicate-of-suffix"
    DUPLICATE_OF_PREFIX = "duplicate-of-prefix"
    JUST_DELETED = "just-deleted"
    REPETITION = "repetition"
    FINISHED = "finished"
    TALK = "talk"
    MID_LINE = "mid-line"
    TOO_LONG = "too-long"
    TOO_SHORT = "too-short"


@dataclass(frozen=True, slots=True)
class ContextPiece:
    """What a prompt shows of another place, without its text.

    `lines`: first, one past the last, from 0; (0, 0) unknown.

    `score` is what it was ranked by, 0 to 1; `tokens` are a guess.
    """

    source: str
    path: str
    lines: tuple[int, int]
    score: float
    tokens: int


@dataclass(frozen=True, slots=True)
class Window:
    """The text near the cursor that is looked at. Line ends are `\\n` only; `newline` is what the document uses there.

    `start` is the offset in the document of the prefix's first character; 0 means that nothing was cut off.
    """

    prefix: str
    suffix: str
    start: int = 0
    newline: str = "\n"

    @property
    def lead(self) -> str:
        """The cursor's line up to the cursor."""
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @property
    def rest(self) -> str:
        """The cursor's line from the cursor on."""
        return self.suffix.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class RawCompletion:
    """What the model wrote: terminators cut, line ends `\\n`, beginning as it is shown; its end is not yet filtered."""

    text: str
    finish: Finish | None  # None: stopped early by the engine
    usage: Usage = field(default=Usage())
    blind: bool = False  # the model did not see what follows the cursor
    filters: tuple[str, ...] = ()  # what has stopped it, and the filters that have changed its beginning
    more: tuple[RawCompletion, ...] = ()  # other answers to the same question
    asked_for: int = 1  # so many were wanted


@dataclass(frozen=True, slots=True)
class Completion:
    """A suggestion: put `text` in place of [start, end) of the snapshot. start <= cursor <= end, all on one line.

    `others` are different ones to choose from, the likeliest first.
    """

    text: str
    start: int
    end: int
    id: str
    others: tuple[Completion, ...] = ()


@dataclass(frozen=True, slots=True)
class NoSuggestion:
    """Silence, and why. `detail` is for people and holds no source text."""

    reason: Reason
    detail: str = ""


Outcome = Completion | NoSuggestion
