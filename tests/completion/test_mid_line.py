"""Suggestions before text on the same line: what they leave can be parsed, or nothing is shown."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from completion.types import Completion, Reason, Trigger
from tests.completion.desk import LOCAL, RAW, Desk, reason
from tests.completion.golden import CURSOR

EXAMPLE = (Path(__file__).resolve().parents[2] / "examples" / "inventory.py").read_bytes().decode("utf-8")
LINES = [
    "import sys",
    "y = 2",
    "# a comment",
    "return",
    "if y:",
    "for y in z:  # each",
    "foo(a, b)",
    "foo(",
    ")",
    "[1, 2,",
    "@property",
    "else:",
    "else: pass",
    "def f(x):",
    "class A: pass",
    '"""Words',
    '"""Words."""',
    "x = y +",
    "x = \\",
    "a,",
    "not",
    "b = ",
    "await ",
]


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def places() -> list[tuple[int, str]]:
    """Offsets of the lines' beginnings and of their first words, with what indents the line behind the cursor."""
    found, at = [], 0
    for line in EXAMPLE.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        if line.strip():
            found += [(at + len(indent), "")] + ([(at, indent)] if indent else [])
        at += len(line) + 1
    return found


@pytest.mark.parametrize("end", ["", "\n", "\n<indent>", "\nz = 3\n"])
@pytest.mark.parametrize("multiline", ["auto", "always"])
async def test_what_is_accepted_keeps_the_file_in_order(end: str, multiline: str) -> None:
    assert parses(EXAMPLE)
    shown = 0
    # What cannot stand before another line is the model's own mistake.
    for line in (each for each in LINES if end != "\nz = 3\n" or parses(each + end)):
        for offset, indent in places():
            column = len(EXAMPLE[:offset].rpartition("\n")[2])
            answer = indent + line + end.replace("<indent>", " " * column)
            marked = EXAMPLE[:offset] + CURSOR + EXAMPLE[offset:]
            outcome = await Desk([answer], multiline=multiline).ask(marked)
            if isinstance(outcome, Completion):
                shown += 1
                after = EXAMPLE[:offset] + outcome.text + EXAMPLE[offset:]
                assert parses(after), (answer, after[max(0, offset - 40) :][:120])
    assert shown > 0


@pytest.mark.parametrize(
    ("capabilities", "trigger", "answer", "expected"),
    [
        (RAW, Trigger.AUTOMATIC, "y = 2\n", Reason.MID_LINE),
        (RAW, Trigger.AUTOMATIC, "return x\n", Reason.DUPLICATE_OF_SUFFIX),
        (RAW, Trigger.INVOKED, "y = 2\n", None),
        (LOCAL, Trigger.AUTOMATIC, "y = 2\n", None),
    ],
)
async def test_a_model_that_did_not_see_the_rest(
    capabilities: object, trigger: Trigger, answer: str, expected: Reason | None
) -> None:
    desk = Desk([answer], capabilities=capabilities)  # type: ignore[arg-type]
    assert reason(await desk.ask("def f(x):\n    ⟦|⟧return x\n", trigger=trigger)) is expected
    # An answer from the cache is judged in the same way.
    assert reason(await desk.ask("def f(x):\n    ⟦|⟧return x\n", trigger=trigger)) is expected
    assert len(desk.backend.requests) == 1


async def test_a_line_typed_by_hand_keeps_the_rest_below_it() -> None:
    desk = Desk(["total = 0\n"])
    await desk.ask("def f(x):\n    ⟦|⟧return x\n")
    outcome = await desk.ask("def f(x):\n    total ⟦|⟧return x\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "= 0\n    "
    assert desk.trace is not None
    assert desk.trace.cache == "typed-through"
