"""The answer of `midfill.explain`: what was asked, what was sent, what was left out. Must not know JSON-RPC.

What was sent is told to the client that asks, and neither kept nor logged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from completion.engine import Engine
from completion.explain import explained, readable
from completion.trace import RequestTrace
from completion.types import DocumentSnapshot


def explain(
    found: Iterable[RequestTrace], documents: Iterable[DocumentSnapshot], engine: Engine | None
) -> list[dict[str, Any]]:
    """One record for each request. `documents` are the open ones."""
    left_out = []
    for document in documents if engine is not None else ():
        if why := engine.left_out(document) if engine is not None else "":
            left_out.append((document.path or document.uri.rpartition("/")[2], why))
    return [_record(trace, left_out) for trace in found]


def _record(trace: RequestTrace, left_out: list[tuple[str, str]]) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(trace.as_json())
    sent = explained(trace)
    lines = readable(sent) if sent is not None else ["sent: nothing, or it is no longer remembered"]
    lines += [f"left out: {path}: {why}" for path, why in left_out]
    record |= sent.as_json() if sent is not None else {}
    record["left_out"] = [{"path": path, "why": why} for path, why in left_out]
    record["explained"] = "\n".join(lines)
    return record
