"""The engine on a Qianfan backend: answers worded by chat models, and the times in the trace."""

from __future__ import annotations

from typing import Any

import pytest

from completion.clock import Clock
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import RequestTrace, TraceLog
from completion.types import Completion
from tests.backends.qianfan_desk import CODER
from tests.completion.desk import context
from tests.completion.golden import CURSOR
from tests.services.qianfan import Answer, QianfanService


class HandClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nobody should sleep for {seconds} s")


async def complete(backend: Any, marked: str, clock: Clock, on_text: Any = None) -> tuple[str, RequestTrace]:
    traces = TraceLog(None, clock=clock)
    engine = Engine(
        [backend], EngineSettings(CompletionSettings(debounce_ms=0, speculate="never")), traces=traces, clock=clock
    )
    trace = traces.begin("1", "file:///a.py")
    outcome = await engine.complete(context(marked), trace, on_text)
    traces.finish(trace, outcome)
    await engine.aclose()
    assert isinstance(outcome, Completion), outcome
    return outcome.text, trace


@pytest.mark.parametrize(
    "answer",
    [
        "return a + b",
        "```python\nreturn a + b\n```",
        "```python\ndef add(a, b):\n    return a + b\n```\nThis adds two numbers.",
        "def add(a, b):\n    return a + b",
        "    return a + b",
    ],
)
@pytest.mark.parametrize("infills", [True, False])
async def test_fences_and_a_repeated_prefix_are_left_out(
    qianfan: QianfanService, make_qianfan: Any, answer: str, infills: bool
) -> None:
    qianfan.infills = infills
    qianfan.reset(Answer(deltas=tuple(answer[at : at + 3] for at in range(0, len(answer), 3))))
    text, trace = await complete(make_qianfan(), f"def add(a, b):\n    {CURSOR}\n\nadd(1, 2)\n", HandClock())
    assert text == "return a + b"
    assert trace.shape == ("infill" if infills else "chat")


@pytest.mark.parametrize("settings", [{}, CODER])
async def test_the_trace_tells_when_text_came(
    qianfan: QianfanService, make_qianfan: Any, settings: dict[str, Any]
) -> None:
    """The clock stands still but between the first text and the second."""
    qianfan.reset(Answer(deltas=("return a\n", "    # ", "b"), hold_after=1))
    clock = HandClock()

    def go_on(_: str) -> None:
        clock.seconds = 2.0
        qianfan.release()

    _, trace = await complete(make_qianfan(**settings), f"def f(a):\n    {CURSOR}\n", clock, go_on)
    assert (trace.dispatched, trace.first_delta, trace.last_delta, trace.answered) == (0.0, 0.0, 2000.0, 2000.0)
    assert (trace.prompt_tokens, trace.generated_tokens) == (21, 3)
