"""Stand-ins in answers: put back however they come, and never seen elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.base import Capabilities, Shape
from backends.scripted import ScriptedBackend
from completion.engine import Engine
from completion.explain import explained
from completion.privacy import redact
from completion.settings import EngineSettings
from completion.trace import TraceLog
from completion.types import Completion, CompletionContext, DocumentSnapshot, Outcome, PlainText, Trigger
from tests.completion.desk import LOCAL, Desk, other
from tests.completion.fake_clock import FakeClock

REMOTE = Capabilities(frozenset({Shape.INFILL}), remote=True)
SECRET = "xK9vQ2mL7pR4tZ8w"
LINE = f'password = "{SECRET}"'
STAND_IN = redact(LINE).partition('"')[2][:-1]
TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
MARKED = f"{LINE}\nx = ⟦|⟧\n"


def text(outcome: Outcome) -> str:
    assert isinstance(outcome, Completion)
    return outcome.text


@pytest.mark.parametrize("at", range(1, len(SECRET)))
async def test_split_over_deltas_anywhere(at: int) -> None:
    desk = Desk(["f(", STAND_IN[:at], STAND_IN[at:], ")"], capabilities=REMOTE)
    seen: list[str] = []
    assert text(await desk.ask(MARKED, on_text=seen.append)) == f"f({SECRET})" == "".join(seen)
    assert SECRET not in repr(desk.backend.requests)


async def test_a_character_at_a_time_and_one_that_begins_like_another() -> None:
    longer = redact(f'password = "{SECRET}x"').partition('"')[2][:-1]
    desk = Desk(["f(", *STAND_IN, ", ", *longer, ")"], capabilities=REMOTE)
    assert text(await desk.ask(f'{LINE}\npwd = "{SECRET}x"\nx = ⟦|⟧\n')) == f"f({SECRET}, {SECRET}x)"


async def test_every_candidate() -> None:
    desk = Desk(lambda sent: [f"f({STAND_IN})" if sent.temperature < 0.5 else f"g({STAND_IN})"], capabilities=REMOTE)
    outcome = await desk.ask(MARKED, trigger=Trigger.INVOKED, candidates=2)
    assert isinstance(outcome, Completion)
    assert [outcome.text, *(each.text for each in outcome.others)] == [f"f({SECRET})", f"g({SECRET})"]


async def test_from_the_cache_and_typed_through() -> None:
    desk = Desk([f"f({STAND_IN})"], capabilities=REMOTE)
    await desk.ask(MARKED)
    assert text(await desk.ask(MARKED)) == f"f({SECRET})"
    assert text(await desk.ask(f"{LINE}\nx = f({SECRET[:5]}⟦|⟧\n")) == f"{SECRET[5:]})"
    assert len(desk.backend.requests) == 1


async def test_a_trace_with_text_holds_stand_ins() -> None:
    desk = Desk([f"f({STAND_IN})"], capabilities=REMOTE, text=True)
    for _ in range(2):  # the second time from the cache
        assert text(await desk.ask(MARKED)) == f"f({SECRET})"
    records = [json.loads(line) for line in desk.lines]
    assert [(each["cache"], each["answer"]) for each in records] == [
        ("miss", f"f({STAND_IN})"),
        ("hit", f"f({STAND_IN})"),
    ]
    assert SECRET not in "".join(desk.lines)


async def test_a_local_model_and_its_trace_hold_the_text_as_it_is() -> None:
    desk = Desk([f"f({SECRET})"], capabilities=LOCAL, text=True)
    assert text(await desk.ask(MARKED)) == f"f({SECRET})"
    assert SECRET in desk.lines[0]


async def test_explanations_name_paths_as_they_were_sent() -> None:
    desk = Desk(["f()"], capabilities=REMOTE)
    beside = other(f"lib/{TOKEN}.py", f"def total(a):\n    secret_key = '{SECRET}x'\n    return a + 12 + 3\n")
    await desk.ask(MARKED, path=f"src/{TOKEN}/a.py", others=(beside,))
    assert desk.trace is not None
    found = explained(desk.trace)
    assert found is not None
    shown = json.dumps(found.as_json())
    assert "total(a)" in shown
    assert not any(secret[at : at + 12] in shown for secret in (SECRET, TOKEN) for at in range(len(secret) - 11))


@pytest.mark.parametrize(("remote", "kept", "seen"), [(True, True, False), (True, False, True), (False, True, True)])
async def test_definitions_from_the_disk_stay_where_their_language_does(
    tmp_path: Path, remote: bool, kept: bool, seen: bool
) -> None:
    (tmp_path / "lib.js").write_text("export function fromElsewhere(a, b) {\n  return a + b;\n}\n", encoding="utf-8")
    code = 'import { fromElsewhere } from "./lib.js";\nconst x = fromElsewhere('
    document = DocumentSnapshot((tmp_path / "a.ts").as_uri(), "typescript", 1, PlainText(code), "a.ts", str(tmp_path))
    backend = ScriptedBackend(script=lambda _: ["a)"], capabilities=REMOTE if remote else LOCAL)
    clock = FakeClock()  # the sources have all the time they need
    traces = TraceLog(None, clock=clock)
    settings = EngineSettings(local_languages=("javascript",) if kept else ())
    engine = Engine([backend], settings, traces=traces, clock=clock)
    await engine.complete(CompletionContext(document, len(code), Trigger.INVOKED), traces.begin("1", document.uri))
    await engine.aclose()
    assert ("function fromElsewhere" in repr(backend.requests)) is seen
