"""Times of a local backend beside llama.cpp alone, in turns within one run. Knows no settings and no table.

The backend is asked as the engine asks it; `bare` is `benchmarks/bare_llama.py` with the same model, threads and
environment.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from functools import partial

from backends.base import Backend, BackendRequest, Delta, Piece, RawPrompt
from lsp_server.bench.children import Child, LeftOutError
from lsp_server.bench.figures import Figure

LONG_ANSWER = "def count():\n    return [1, 2, 3,"  # goes on like this for as long as it may
DECODED, LEAST_DECODED = 128, 32  # tokens
PROMPT_CHARACTERS = 7_800  # about 2,000 tokens of code
KEYS = 24
_HELD = 4  # prompts, each as long as the one that is measured
CANDIDATES, CANDIDATE_TOKENS, CANDIDATE_CHARACTERS = 3, 48, 2_000
DECODE_BAR, PROMPT_BAR, KEYSTROKE_BAR, CANDIDATES_BAR = 0.98, 1.05, 1.2, 1.6


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds from the question. `generated` counts tokens up to the first and to the last text."""

    first: float
    last: float
    generated: tuple[int, int]

    @property
    def per_second(self) -> float:
        tokens = self.generated[1] - self.generated[0]
        if tokens < LEAST_DECODED:
            raise LeftOutError(f"the model wrote {tokens} tokens only")
        return tokens / (self.last - self.first)


def ask(backend: Backend, text: str, max_tokens: int) -> AsyncGenerator[Delta, None]:
    return backend.stream(BackendRequest(RawPrompt((Piece(text),)), max_tokens))


async def answer(backend: Backend, text: str, max_tokens: int) -> Answer:
    began = time.perf_counter()
    first = last = 0.0
    counts: list[int] = []
    async with aclosing(ask(backend, text, max_tokens)) as deltas:
        async for delta in deltas:
            if delta.text or not counts:
                last = time.perf_counter() - began
                first = first or last
                counts.append(delta.usage.generated_tokens or 0 if delta.usage else 0)
    return Answer(first, last, (counts[0], counts[-1]))


async def decode(backend: Backend, bare: Child, rounds: int) -> list[Figure]:
    async def ours() -> float:
        return (await answer(backend, LONG_ANSWER, DECODED)).per_second

    async def theirs() -> float:
        found = await bare.ask("decode", text=LONG_ANSWER, count=DECODED)
        return float(found["tokens"] / found["seconds"])

    a, b = await in_turns(rounds, ours, theirs)
    note = f"{statistics.median(a):.0f} to {statistics.median(b):.0f} tokens/s"
    return [Figure("decoding, ours to llama.cpp's", _ratio(a, b), "×", DECODE_BAR, at_least=True, note=note)]


async def cold_prompt(
    started: Callable[[], AbstractAsyncContextManager[Backend]], held: Backend, bare: Child, rounds: int, source: str
) -> list[Figure]:
    """A new prompt, in an engine just `started`, as llama.cpp has it, and in one that holds the prompts of others.

    Attention goes over the cells of those, too, though they are masked: a prompt costs more beside them.
    """
    numbers = itertools.count()

    def fresh() -> str:
        """Nothing of it was evaluated before: it differs from its beginning."""
        return f"# {next(numbers)} {random.random()}\n{source[:PROMPT_CHARACTERS]}"

    tokens = 0

    async def ours() -> float:
        async with started() as backend:
            await answer(backend, "x", 1)  # the weights are in memory now
            return (await answer(backend, fresh(), 1)).first

    async def beside() -> float:
        return (await answer(held, fresh(), 1)).first

    async def theirs() -> float:
        nonlocal tokens
        found = await bare.ask("prompt", text=fresh())
        tokens = found["tokens"]
        return float(found["seconds"])

    a, b = await in_turns(rounds, ours, theirs)
    note = f"{statistics.median(a):.2f} to {statistics.median(b):.2f} s for {tokens} tokens"
    figures = [Figure("cold prompt to first token", _ratio(a, b), "×", PROMPT_BAR, note=note)]
    for _ in range(_HELD):
        await beside()
    a, b = await in_turns(rounds, beside, theirs)
    note = f"{statistics.median(a):.2f} to {statistics.median(b):.2f} s, with as much held as goes in"
    return [*figures, Figure("cold prompt beside those of other documents", _ratio(a, b), "×", note=note)]


async def keystroke(backend: Backend, bare: Child, source: str, keys: int = KEYS) -> list[Figure]:
    """Real code typed at the end of a long prompt. The measure: a decode step, and the tokens that are new."""
    ratios, times = [], []
    await answer(backend, source[:PROMPT_CHARACTERS], 1)
    for length in range(PROMPT_CHARACTERS + 1, PROMPT_CHARACTERS + 1 + keys):
        found = await bare.ask("keystroke", before=source[: length - 1], after=source[:length])
        taken = (await answer(backend, source[:length], 1)).first
        ratios.append(taken / (found["evaluate_s"] + found["step_s"]))
        times.append(taken * 1e3)
    note = f"{statistics.median(times):.1f} ms to first token, {keys} keys behind {found['tokens']} tokens"
    return [Figure("first token after a key", statistics.median(ratios), "×", KEYSTROKE_BAR, note=note)]


async def candidates(backend: Backend, rounds: int, source: str) -> list[Figure]:
    """Several answers to one prompt, written side by side, to one answer: whole requests."""
    figures = []
    for name, known in (("prompt known", True), ("prompt new", False)):

        async def taken(count: int, known: bool = known) -> float:
            head = "" if known else f"# {random.random()}\n"
            text = f"{head}{source[:CANDIDATE_CHARACTERS]}\n\n{LONG_ANSWER}"
            request = BackendRequest(RawPrompt((Piece(text),)), CANDIDATE_TOKENS, candidates=count)
            seen = set()
            began = time.perf_counter()
            async with aclosing(backend.stream(request)) as deltas:
                async for delta in deltas:
                    seen.add(delta.index)
            if len(seen) < count:
                raise LeftOutError(f"the engine wrote {len(seen)} answers where {count} were asked for")
            return time.perf_counter() - began

        several, one = await in_turns(rounds, partial(taken, CANDIDATES), partial(taken, 1))
        note = f"{statistics.median(several):.2f} to {statistics.median(one):.2f} s, {CANDIDATE_TOKENS} tokens each"
        title = f"{CANDIDATES} candidates to one, {name}"
        figures.append(Figure(title, _ratio(several, one), "×", CANDIDATES_BAR, note=note))
    return figures


async def looked_up(bare: Child, rounds: int, source: str) -> list[Figure]:
    """What draft tokens from the context would give: llama.cpp alone with them and without."""
    head, figures = source[:CANDIDATE_CHARACTERS], []
    for name, text in (("repeated code", f"{head}\n\n# The same again:\n{source[:200]}"), ("other code", head)):

        async def decoded(operation: str, text: str = text) -> float:
            found = await bare.ask(operation, text=text, count=DECODED)
            return float(found["tokens"] / found["seconds"])

        a, b = await in_turns(rounds, partial(decoded, "lookup"), partial(decoded, "decode"))
        note = f"{statistics.median(a):.0f} to {statistics.median(b):.0f} tokens/s, llama.cpp alone"
        figures.append(Figure(f"prompt lookup, {name}", _ratio(a, b), "×", note=note))
    return figures


async def cancelled(backend: Backend, rounds: int, source: str) -> list[Figure]:
    """From a cancel to the answer to the next question, less what that answer takes of an idle engine."""
    await answer(backend, "x = 1", 1)
    idle = statistics.median([(await answer(backend, "x = 1", 1)).first for _ in range(rounds)])
    cold = (await answer(backend, f"# {random.random()}\n{source[:PROMPT_CHARACTERS]}", 1)).first

    async def prompt() -> float:
        text = f"# {random.random()}\n{source[:PROMPT_CHARACTERS]}"
        return await _next_answer(backend, text, wait_for_text=False, within_s=cold * 0.8)

    async def decoding() -> float:
        return await _next_answer(backend, LONG_ANSWER, wait_for_text=True, within_s=0.1)

    in_prompt, in_decode = await in_turns(rounds, prompt, decoding)
    return [
        Figure(f"cancel to idle, {name}", statistics.median(taken) * 1e3, "ms", note=f"{max(taken) * 1e3:.1f} at most")
        for name, taken in (
            ("in the prompt", [max(0.0, each - idle) for each in in_prompt]),
            ("while decoding", [max(0.0, each - idle) for each in in_decode]),
        )
    ]


async def _next_answer(backend: Backend, text: str, *, wait_for_text: bool, within_s: float) -> float:
    """Seconds from the cancel, at a random moment, to the next answer."""
    begun = asyncio.Event()

    async def consume() -> None:
        async with aclosing(ask(backend, text, 1000)) as deltas:
            async for _ in deltas:
                begun.set()

    task = asyncio.create_task(consume())
    if wait_for_text:
        await begun.wait()
    await asyncio.wait({task}, timeout=random.random() * within_s)
    began = time.perf_counter()
    task.cancel()
    await asyncio.wait({task})
    await answer(backend, "x = 1", 1)
    return time.perf_counter() - began


async def in_turns(
    rounds: int, ours: Callable[[], Awaitable[float]], theirs: Callable[[], Awaitable[float]]
) -> tuple[list[float], list[float]]:
    """Measure both in each round, the first of a round second in the next. A round before them is not counted."""
    await ours(), await theirs()
    a, b = [], []
    for number in range(rounds):
        if number % 2:
            b.append(await theirs())
            a.append(await ours())
        else:
            a.append(await ours())
            b.append(await theirs())
    return a, b


def _ratio(a: list[float], b: list[float]) -> float:
    return statistics.median(x / y for x, y in zip(a, b, strict=True))
