"""Answers in the shape OpenAI gave them, which many services share. Must not know which service speaks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backends.base import BackendError, ChatPrompt, Delta, ErrorKind, Finish, Usage

MOST_TOKENS = 1 << 40  # nobody has counted so many

_INFILLING = re.compile(r"infill|fill.?in.?the.?middle|\bfim\b|suffix", re.I)
_REFUSED = re.compile(r"\bnot\b|n't\b|unsupported|cannot|no longer", re.I)


def cannot_infill(said: str) -> bool:
    """Whether an error says that a model does not infill. Services word it freely."""
    return bool(_INFILLING.search(said) and _REFUSED.search(said))


def messages_of(prompt: ChatPrompt) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in prompt.messages]


class ChoiceReader:
    """Reads one choice: its `text`, `delta.content` or `message.content`, in streams and whole answers alike.

    That is the first one that comes; where there are several, their parts may come in any order.
    """

    def __init__(self) -> None:
        self._index: Any = None  # of the choice that is read, once it was told

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """Records without a choice, such as one that counts tokens, hold no text. Raises BackendError(PROTOCOL)."""
        choices = record.get("choices")
        choice = self._mine(choices) if isinstance(choices, list) else None
        if choice is None:
            if last or not isinstance(choices, list):
                raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no choices.")
            return Delta("")
        reason = choice.get("finish_reason")
        if not reason and not last:  # some services write "" for null
            return Delta(text_of(choice))
        finish = Finish.LENGTH if reason in ("length", "model_length") else Finish.STOP
        return Delta(text_of(choice), finish, usage_of(record))

    def _mine(self, choices: list[Any]) -> Mapping[str, Any] | None:
        for choice in choices:
            index = choice.get("index") if isinstance(choice, Mapping) else None
            if isinstance(choice, Mapping) and (self._index is None or index in (None, self._index)):
                self._index = index if self._index is None else self._index
                return choice
        return None

    def ended(self, *, done: bool) -> Delta | None:
        """A service that says `[DONE]` has said all, with a reason or without."""
        return Delta("", Finish.STOP) if done else None


def text_of(choice: Mapping[str, Any]) -> str:
    """The text of a choice. Some services send the content as a list of typed parts."""
    part = choice.get("delta") or choice.get("message")
    content = part.get("content") if isinstance(part, Mapping) else choice.get("text")
    if isinstance(content, list):
        texts = (item.get("text") for item in content if isinstance(item, Mapping))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def finish_reason(record: Mapping[str, Any]) -> Any:
    """Why the first choice ended; None if it goes on, or there is none."""
    choices = record.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice.get("finish_reason") if isinstance(choice, Mapping) else None


def usage_of(record: Mapping[str, Any]) -> Usage | None:
    usage = record.get("usage")
    if not isinstance(usage, Mapping):
        return None
    return Usage(count_of(usage, "prompt_tokens"), None, count_of(usage, "completion_tokens"))


def count_of(record: Mapping[str, Any], name: str) -> int | None:
    """A number of tokens in any record; None for what cannot be one."""
    value = record.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS else None
