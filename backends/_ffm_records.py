"""What FFM's JSON records say: parts of an answer, its end, errors. Must not know how they came."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backends._errors import said_by
from backends._fill_me import AnswerText
from backends._openai_wire import count_of
from backends.base import BackendError, Delta, ErrorKind, Finish, Usage

# The wording of these errors is undocumented, so what they must say is looked for.
_UNSUPPORTED = re.compile(r"not\W+(be\W+)?(support|implement)|n't support|unsupport|不支援|不支持", re.I)
_UNAVAILABLE = re.compile(r"not\W+(be\W+)?(available|allow|enable|possible|have)|\bno\b|n't|cannot", re.I)
_INFILLING = re.compile(r"infill|fill.?in|fill_me|\bfim\b", re.I)
_GENERATING = re.compile(r"generat|complet|conversation|\bchat|對話", re.I)
_CHATS = re.compile(
    r"deprecat|(\bonly|instead|\buse)\b.*(conversation|\bchat)|(conversation|\bchat).*(\bonly|instead)\b", re.I
)
_MODEL = re.compile(r"model|模型", re.I)
_OTHER = re.compile(r"multiple|more than one|only one|多個|parameter|sequences", re.I)  # markers, sampling


def cannot_infill(record: Mapping[str, Any]) -> bool:
    """Whether an error of `text_infilling` means that the model has no infilling."""
    if isinstance(record.get("detail"), list):  # validation: a parameter, not the model
        return False
    said = said_by(record)
    if _OTHER.search(said):
        return False
    if _INFILLING.search(said):
        return bool(_UNSUPPORTED.search(said) or _UNAVAILABLE.search(said))
    return bool(_UNSUPPORTED.search(said) and _MODEL.search(said))


def cannot_generate(record: Mapping[str, Any]) -> bool:
    """Whether an error of `generate` means that the model only chats."""
    said = said_by(record)
    if isinstance(record.get("detail"), list) or _OTHER.search(said) or _INFILLING.search(said):
        return False
    return bool(_GENERATING.search(said) and (_UNSUPPORTED.search(said) or _CHATS.search(said)))


class Answer:
    """Turns the records of one answer into deltas."""

    def __init__(self, stand_in: str) -> None:
        self._text = AnswerText(stand_in)
        self._parts: list[str] = []

    def feed(self, record: Mapping[str, Any], *, last: bool) -> Delta:
        """`last`: nothing follows, whatever the record says. Raises BackendError(PROTOCOL)."""
        # In a stream null is one more token that cannot be decoded alone; a whole answer must have text.
        given = record.get("generated_text")
        if not (isinstance(given, str) or (not last and given is None and "generated_text" in record)):
            raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no generated_text.")
        text, reason = record.get("generated_text") or "", record.get("finish_reason")
        if not last and not reason and record.get("total_time_taken") is None:
            if text:
                self._parts.append(text)
            return Delta(self._text.feed(text))
        finish = Finish.LENGTH if reason == "length" else Finish.STOP
        usage = Usage(count_of(record, "prompt_tokens"), None, count_of(record, "generated_tokens"))
        return Delta(self._text.feed(self._rest(text), last=True), finish, usage)

    def ended(self, *, done: bool) -> None:
        """A stream always has its final record."""

    def _rest(self, text: str) -> str:
        """What the final record adds: its text, unless that repeats the whole answer, as one document says it does.

        Fewer than two parts before it, or only blanks, repeat themselves by chance.
        """
        before = "".join(self._parts)
        if len(self._parts) > 1 and before.strip() and text.startswith(before):
            return text[len(before) :]
        return text
