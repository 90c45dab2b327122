"""Prompt tokens evaluated per key of recorded typing: by an engine of ours, and by llama.cpp's own server.

Both are asked at every key, and keep no answers: what is compared is what each finds in its key-value cache. The server
is asked as llama.vim asks it. Knows no command line.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from completion.engine import Engine
from completion.trace import TraceLog
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Trigger
from lsp_server.bench.children import Child
from lsp_server.bench.recording import Key, Session, apply

PREFIX_LINES, SUFFIX_LINES = 256, 64  # llama.vim's n_prefix and n_suffix
LANGUAGE = "python"


@dataclass(frozen=True, slots=True)
class Moment:
    """The files right after a key. `session` tells sessions apart."""

    session: int
    number: int
    key: Key
    texts: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.texts[self.key.path]


@dataclass(slots=True)
class Counts:
    """Tokens of each key: `evaluated`, and `prompt` with those that were found evaluated."""

    evaluated: list[int] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)

    def add(self, evaluated: int, reused: int) -> None:
        self.evaluated.append(evaluated)
        self.prompt.append(evaluated + reused)

    @property
    def median(self) -> float:
        return statistics.median(self.evaluated)

    @property
    def mean(self) -> float:
        return statistics.mean(self.evaluated)

    @property
    def note(self) -> str:
        prompt = statistics.mean(self.prompt)
        return f"mean {self.mean:.1f}, {len(self.evaluated)} keys, prompts of {prompt:.0f} tokens"


def moments(sessions: Sequence[Session], keys: int) -> Iterator[Moment]:
    """The first `keys` keys; 0: all."""
    count = 0
    for number, session in enumerate(sessions):
        texts = dict(session.files)
        for key in session.typing():
            texts[key.path] = apply(texts[key.path], key)
            count += 1
            yield Moment(number, count, key, dict(texts))
            if count == keys:
                return


async def replay(typed: Iterator[Moment], ask: Callable[[Moment], Awaitable[tuple[int, int]]]) -> Counts:
    """`ask` returns the tokens evaluated and those found. A session's first key does not count: all is new then."""
    counts, session = Counts(), -1
    for moment in typed:
        evaluated, found = await ask(moment)
        if moment.session == session:
            counts.add(evaluated, found)
        session = moment.session
    return counts


class Ours:
    """`traces` must be the engine's own, writing to `lines`. `others`: the session's other files are open, too."""

    def __init__(self, engine: Engine, traces: TraceLog, lines: list[str], *, others: bool = False) -> None:
        self._engine = engine
        self._traces = traces
        self._lines = lines
        self._others = others

    async def ask(self, moment: Moment) -> tuple[int, int]:
        documents = [_document(moment, path) for path in (moment.key.path, *_others(moment))]
        others = tuple(documents[1:]) if self._others else ()
        context = CompletionContext(documents[0], moment.key.cursor, Trigger.INVOKED, others=others)
        trace = self._traces.begin(str(moment.number), documents[0].uri)
        outcome = await self._engine.complete(context, trace)
        self._traces.finish(trace, outcome)
        record = json.loads(self._lines[-1])
        reused = record["reused_tokens"] or 0
        return (record["prompt_tokens"] or 0) - reused, reused


class Server:
    """`child` is `benchmarks/peer_server.py` with a model loaded."""

    def __init__(self, child: Child, *, infills: bool) -> None:
        self._child = child
        self._infills = infills

    async def ask(self, moment: Moment) -> tuple[int, int]:
        body = window(moment.text, moment.key.cursor)
        if self._infills:
            found = await self._child.ask("post", route="/infill", body={**_BODY, **body})
        else:
            prompt = body["input_prefix"] + body["prompt"]
            found = await self._child.ask("post", route="/completion", body={**_BODY, "prompt": prompt})
        return found["evaluated"], found["reused"]


_BODY: Mapping[str, Any] = {"n_predict": 1, "cache_prompt": True, "id_slot": 0, "temperature": 0, "stream": False}


def window(text: str, cursor: int) -> dict[str, str]:
    """What llama.vim sends: lines above, the cursor's line up to the cursor, its rest with lines below."""
    above, _, lead = text[:cursor].rpartition("\n")
    lines_above = above.split("\n")[-PREFIX_LINES:] if "\n" in text[:cursor] else []
    rest, _, below = text[cursor:].partition("\n")
    lines_below = below.split("\n")[:SUFFIX_LINES]
    return {
        "input_prefix": "".join(line + "\n" for line in lines_above),
        "prompt": lead,
        "input_suffix": "\n".join((rest, *lines_below)) + "\n",
    }


def _document(moment: Moment, path: str) -> DocumentSnapshot:
    uri = f"file:///{moment.session}/{path}"
    return DocumentSnapshot(uri, LANGUAGE, moment.number, PlainText(moment.texts[path]), path)


def _others(moment: Moment) -> list[str]:
    return [path for path in moment.texts if path != moment.key.path]
