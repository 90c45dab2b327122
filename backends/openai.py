"""Any service with OpenAI's routes: vLLM, LM Studio, LiteLLM, llama-server, OpenAI itself … Knows no editor.

Three ways to ask: prefix and `suffix` to `/completions`, the model family's own form to `/completions`, a chat. Which
of them a service takes is found out with one question that costs one token; `mode` says it instead.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

import httpx

from backends._errors import said_by, too_long
from backends._openai_wire import ChoiceReader, finish_reason, messages_of
from backends._service import Ask, HttpBackend, source_of
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Check,
    ErrorKind,
    InfillPrompt,
    Observer,
    Probe,
    RawPrompt,
    Shape,
)
from backends.settings import BackendSettings

COMPLETIONS, CHAT = "/completions", "/chat/completions"
MAX_STOPS = 4  # more are refused by OpenAI

MODES: Mapping[str, frozenset[Shape]] = {
    "": frozenset(Shape),
    "suffix": frozenset({Shape.INFILL}),
    "template": frozenset({Shape.RAW}),
    "chat": frozenset({Shape.CHAT}),
}

# A service that reads the suffix counts a token for each of its lines at least; the prefix alone takes ten or so.
_LINES = 64
_QUESTION = BackendRequest(
    InfillPrompt("total = add(1,", "".join(f" {n})\nprint(add({n}, total))\n" for n in range(_LINES // 2))),
    max_tokens=1,
)

# How services say that they have no such route, or that a model has no use for it. Models that are missing are others.
_NO_ROUTE = re.compile(
    r"(?:\d{3}:? )?(?:page |file |resource |route )?not found\.?|no route\b.*|cannot post\b.*"
    r"|(?:invalid|unknown|unrecognized)\W+(?:request )?(?:url|endpoint|route|path)\b.*|method not allowed.*|",
    re.I | re.S,
)
_NO_COMPLETION = re.compile(
    r"\bchat models?\b|v1/chat/completions|not\b.{0,30}\bcompletions? (?:model|endpoint|api)"
    r"|not support.{0,20}\b(?:text )?(?:completions?|generate)\b",
    re.I,
)
_NO_CHAT = re.compile(
    r"chat.?template|not\b.{0,30}\bchat (?:model|completions?|endpoint|api)|not support.{0,20}\bchat", re.I
)

_RESET = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")  # "6m0s", "120ms"
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

SILENT = frozenset({ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE})  # whoever waited for that need not wait twice

_FILTERED = "the content filter ended the answer"

_log = logging.getLogger(__name__)


class OpenAIBackend(HttpBackend):
    """One model of a service with OpenAI's routes; `url` ends in `/v1` as a rule. `parameters` go into requests."""

    modes = MODES
    sampling: tuple[str, ...] = (
        "temperature",
        "top_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
    )  # others may be refused
    infill_hint = "The model family's own form is used, or a chat."
    infill_warning = False  # most such services do not, and a family's form is as good

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        if not settings.model:
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.model is not set; allowed: a model's name.")
        if settings.mode not in self.modes:
            allowed = ", ".join(repr(mode) for mode in self.modes if mode)
            raise BackendError(ErrorKind.SETTINGS, f"backends.{name}.mode is {settings.mode!r}; allowed: {allowed}.")
        super().__init__(name, settings, observer)
        self._shapes = self.modes[settings.mode]
        self._decided = bool(settings.mode)
        self._unsure = False  # whether the suffix is read cannot be told

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(self._shapes, remote=self._http.remote, prefers_template=self._unsure)

    def ask(self, request: BackendRequest) -> Ask:
        match request.prompt:
            case InfillPrompt(prefix, suffix):
                # An empty suffix switches infilling off in several services.
                return self.post(COMPLETIONS, {"prompt": prefix, "suffix": suffix or "\n"}, Shape.INFILL, request)
            case RawPrompt():
                return self.post(COMPLETIONS, {"prompt": request.prompt.text}, Shape.RAW, request)
            case ChatPrompt():
                return self.post(CHAT, {"messages": messages_of(request.prompt)}, Shape.CHAT, request)

    def post(self, path: str, prompt: Mapping[str, Any], shape: Shape, request: BackendRequest) -> Ask:
        parameters = self._settings.parameters
        # The question's answer is read for its token count, which streams do not hold.
        body: dict[str, Any] = {"model": self.model, **prompt, "stream": request is not _QUESTION}
        if "max_completion_tokens" not in parameters:  # newer models of OpenAI want this one
            body["max_tokens"] = request.max_tokens  # most services stop after 16 tokens if it is not said
        body["temperature"] = request.temperature
        if stops := stops_of(request.stop):
            body["stop"] = stops
        body |= {key: value for key, value in parameters.items() if request is not _QUESTION or key != "stream"}
        body |= request.sampling.named(*self.sampling)
        return Ask(self._http.url(path), body, ChoiceReader(), shape, source=source_of(request.prompt))

    # Errors -----------------------------------------------------------------------------------------------------------

    def said(self, record: Mapping[str, Any]) -> str:
        """Old releases of vLLM tell errors without `error` around them."""
        if record.get("object") == "error":
            return str(record.get("message") or "no text")
        return _FILTERED if finish_reason(record) == "content_filter" else said_by(record)

    def error_kind(
        self, status: int | None, record: Mapping[str, Any], said: str, ask: Ask, *, streamed: bool
    ) -> ErrorKind | None:
        error = record.get("error", record)
        if isinstance(error, Mapping) and "insufficient_quota" in (error.get("code"), error.get("type")):
            return ErrorKind.QUOTA
        if streamed or status is None or not record or too_long(said):  # no record: a web page
            return None
        if ask.shape is Shape.INFILL and status in (400, 422, 501) and "suffix" in said.lower():
            return ErrorKind.INFILL_UNSUPPORTED if self._lose(Shape.INFILL) else None
        missing = no_route(status, said)
        if status not in (400, 404, 405, 422, 501):
            return None
        if ask.shape is Shape.CHAT and (missing or _NO_CHAT.search(said)):
            return ErrorKind.SHAPE_UNSUPPORTED if self._lose(Shape.CHAT) else None
        if ask.shape is not Shape.CHAT and (missing or _NO_COMPLETION.search(said)):
            return ErrorKind.SHAPE_UNSUPPORTED if self._lose(Shape.INFILL, Shape.RAW) else None
        return None

    def _lose(self, *shapes: Shape) -> bool:
        """Ask no more in these shapes. False if none would be left: then the cause is another one."""
        left = self._shapes.difference(shapes)
        if self._settings.mode:
            return False
        _log.info("%s does not take %s", self._name, ", ".join(shape.value for shape in shapes))
        self._shapes = left or self.modes[""]
        self._decided = self._decided and bool(left)
        return bool(left)

    def pause_s(self, response: httpx.Response) -> float | None:
        """`Retry-After`, or when the limit that was reached is lifted."""
        told = super().pause_s(response)
        if told is None and response.status_code == 429:
            spent = [
                what for what in ("requests", "tokens") if response.headers.get(f"x-ratelimit-remaining-{what}") == "0"
            ]
            told = max(
                (_seconds(response.headers.get(f"x-ratelimit-reset-{what}", "")) for what in spent), default=None
            )
        return told

    def hint(self, kind: ErrorKind, ask: Ask) -> str:
        mode = self._settings.mode
        if mode and kind in (ErrorKind.BAD_REQUEST, ErrorKind.MODEL_NOT_FOUND):
            return f'mode = "{mode}" is set: without it midfill finds out how to ask.'
        return ""

    # Finding out ------------------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Raises BackendError for keys and connections; what else the question failed of the next request will tell."""
        await super().prepare()
        if not self._decided:
            await self.decide()

    async def decide(self) -> None:
        """Ask the question, once for this backend unless it fails. Raises BackendError where no request would help."""
        counted: int | None = None
        try:
            async with aclosing(self.stream(_QUESTION)) as deltas:
                async for delta in deltas:
                    counted = delta.usage.prompt_tokens if delta.usage else None
        except BackendError as error:
            if error.kind in SILENT:
                raise
            self._decided = error.kind in (ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED)
            return
        self._decided, self._unsure = True, counted is None
        if counted is not None and counted < _LINES:
            self._lose(Shape.INFILL)

    async def probe(self) -> Probe:
        """Ask for a few tokens in the way that works, and tell which it is."""
        if not self._decided:
            with suppress(BackendError):  # the probe itself will tell
                await self.decide()
        shapes = self._shapes
        found = await super().probe()
        if self._shapes < shapes:  # learnt more
            found = await super().probe()
        told = self.told()
        return Probe((*found.checks, Check("mode", True, told))) if told else found

    def told(self) -> str:
        """How this service is asked, for people; empty while that is not known."""
        if self._settings.mode:
            return f"{self._settings.mode}, as set"
        if not self._decided:
            return ""
        if self._unsure:
            return "template, for unknown families suffix: the service does not tell whether it reads `suffix`"
        if Shape.INFILL in self._shapes:
            return "suffix: the service reads the text behind the cursor"
        if self._shapes == {Shape.CHAT}:
            return f"chat: the service does not complete text at {COMPLETIONS}"
        chat = ", for unknown families chat" if Shape.CHAT in self._shapes else ""
        return f"template{chat}: the service does not read `suffix`"


def no_route(status: int | None, said: str) -> bool:
    """Whether an error means that the service has no such route. Web pages say nothing about that."""
    return status == 405 or (status == 404 and bool(_NO_ROUTE.fullmatch(said.strip())))


def _seconds(text: str) -> float:
    """A duration as OpenAI writes it; 0 if it is none."""
    return sum(float(number) * _UNITS[unit] for number, unit in _RESET.findall(text))


def stops_of(stop: Sequence[str]) -> list[str]:
    """As many stop strings as services take, the most useful ones."""
    return [text for text in stop if text][:MAX_STOPS]
