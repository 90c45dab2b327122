"""What FFM's JSON records say: parts of an answer, its end, errors. Must not know how they came."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backends._fill_me import AnswerText
from backends._sse import decode_object
from backends.base import BackendError, Delta, Finish, Usage

# The wording of these errors is undocumented, so what they must say is looked for.
_UNSUPPORTED = re.compile(r"not\W+(be\W+)?(support|implement)|n't support|unsupport|不支援|不支持", re.I)
_UNAVAILABLE = re.compile(r"not\W+(be\W+)?(available|allow|enable|possible|have)|\bno\b|n't|cannot", re.I)
_INFILLING = re.compile(r"infill|fill.?in|fill_me|\bfim\b", re.I)
_MODEL = re.compile(r"model|模型", re.I)
_OTHER = re.compile(r"multiple|more than one|only one|多個|parameter|sequences", re.I)  # markers, sampling
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size|limit)|(input|prompt|token)s?\b.{0,40}(too long|exceed)"
    r"|exceed.{0,40}(token|context|length)|too many tokens",
    re.I,
)


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


def too_long(said: str) -> bool:
    return bool(_TOO_LONG.search(said))


class Answer:
    """Turns the records of one answer into deltas."""

    def __init__(self, stand_in: str) -> None:
        self._text = AnswerText(stand_in)
        self._parts: list[str] = []

    def feed(self, record: Mapping[str, Any], *, last: bool = False) -> Delta:
        """`last`: nothing follows, whatever the record says."""
        text, reason = record.get("generated_text") or "", record.get("finish_reason")
        if not last and reason is None and record.get("total_time_taken") is None:
            if text:
                self._parts.append(text)
            return Delta(self._text.feed(text))
        finish = Finish.LENGTH if reason == "length" else Finish.STOP
        usage = Usage(_count(record, "prompt_tokens"), None, _count(record, "generated_tokens"))
        return Delta(self._text.feed(self._rest(text), last=True), finish, usage)

    def _rest(self, text: str) -> str:
        """What the final record adds: its text, unless that repeats the whole answer, as one document says it does.

        Fewer than two parts before it, or only blanks, repeat themselves by chance.
        """
        before = "".join(self._parts)
        if len(self._parts) > 1 and before.strip() and text.startswith(before):
            return text[len(before) :]
        return text


def _count(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    return value if isinstance(value, int) else None


def said_by(record: Mapping[str, Any]) -> str:
    """The error a record holds, in the service's words; empty if none. Echoed input is left out."""
    said = record.get("detail") or record.get("error") or ""
    if isinstance(said, list):  # FastAPI's validation errors
        items = [item for item in said if isinstance(item, dict)]
        return "; ".join(f"{'.'.join(map(str, item.get('loc') or ()))}: {item.get('msg')}" for item in items)
    if isinstance(said, dict):
        said = said.get("message") or said.get("msg") or "no text"
    return str(said)


def error_record(body: str) -> dict[str, Any]:
    """The record in the body of an error; plain text counts as its `detail`."""
    try:
        return decode_object(body)
    except BackendError:
        return {"detail": body}
