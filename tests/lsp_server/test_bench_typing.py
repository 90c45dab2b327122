"""`midfill bench typing`: who types, who answers, what is counted, and a few keys of it with a loopback service."""

from __future__ import annotations

import ast
import json
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from lsp_server.bench import counted, stage, typing_bench
from lsp_server.bench.children import Child
from lsp_server.bench.editor import child_environment, offset_of, position
from lsp_server.bench.oracle import Oracle
from lsp_server.bench.recording import Run, Session, read
from lsp_server.bench.replay import Tally, spread
from lsp_server.bench.typist import Change, Stretch, chosen, states, stretches, taken, typed
from lsp_server.bench.variants import VARIANTS, WHOLE, known
from tests.lsp_server.commandline import midfill

needs_uvicorn = pytest.mark.skipif(find_spec("uvicorn") is None, reason="the extra gateway is not installed")
SESSION = Session({"a.py": "x = 1\ny = 2\n"}, (Run(900, "a.py", 5, 0, ("\nif x:\n    yq\b = tax",)),))


def test_a_run_is_a_text_that_is_meant() -> None:
    (stretch,) = stretches(SESSION)
    assert (stretch.text, stretch.slips) == ("\nif x:\n    y = tax", {12: "q"})
    assert (stretch.pauses_ms[0], len(stretch.pauses_ms)) == (900, len(stretch.text))
    assert stretches(SESSION) == [stretch]
    assert [(each.start, each.end, each.text) for each in stretch.keys(6)] == [(11, 11, "\n    ")]
    assert stretch.after(6) == 11
    slip = [(17, 17, "q"), (17, 18, ""), (17, 17, " ")]
    assert [(each.start, each.end, each.text) for each in stretch.keys(12)] == slip


def test_what_is_in_the_way_goes_first() -> None:
    short, long = (Stretch(0, "a", 3, count, "", pauses_ms=[700.0]) for count in (2, 13))
    assert list(short.removals()) == [Change(700, 4, 5, ""), Change(150, 3, 4, "")]
    assert list(long.removals()) == [Change(700, 3, 16, "")]


def test_a_paste_comes_at_once_and_saves_nobody_anything() -> None:
    (stretch,) = stretches(Session({"a": ""}, (Run(0, "a", 0, 0, ("x", ("pasted",), "y")),)))
    assert (stretch.after(0), stretch.after(1), stretch.keys(1)[0].text) == (1, 7, "pasted")
    assert typed(stretch) == 2


@pytest.mark.parametrize(
    ("offered", "coming", "expected"),
    [
        ("return x", "return x + 1\n", (8, 1)),
        ("ret", "return x", (0, 0)),  # too short to be worth a key
        ("return y", "return x", (6, 1)),
        ("return x + y", "return x + z", (10, 3)),
        ("retain", "return x", (0, 0)),
        ("a = 1\nb = 2\nc", "a = 1\nb = 2\nd", (11, 2)),
        ("a = 1\nb = 2", "a = 1\nc = 2", (5, 1)),
        ("\n    a = 1", "\n    b = 2", (0, 0)),
        ("return x + 1", "return x", (8, 2)),
    ],
)
def test_what_of_a_suggestion_is_taken(offered: str, coming: str, expected: tuple[int, int]) -> None:
    assert taken(offered, coming) == expected


def test_keys_are_taken_of_several_sessions() -> None:
    sessions = [Session({"a": ""}, (Run(0, "a", 0, 0, ("x" * 200,)),)) for _ in range(3)]
    assert [sum(map(typed, meant)) for _, meant in chosen(sessions, 301)] == [150, 151]
    assert [sum(map(typed, meant)) for _, meant in chosen(sessions, 20)] == [20]
    assert [sum(map(typed, meant)) for _, meant in chosen(sessions, 0)] == [200, 200, 200]


def test_the_shipped_sessions_lead_to_code() -> None:
    assert typing_bench.RECORDING.stat().st_size < 300_000
    every = chosen(read(typing_bench.RECORDING), 0)
    for session, meant in every:
        texts = dict(session.files)
        for stretch, text in states(session, meant):
            texts[stretch.path] = text[: stretch.at] + stretch.text + text[stretch.at :]
        for path, text in texts.items():
            ast.parse(text, path)
    assert sum(typed(stretch) for _, meant in every for stretch in meant) > 3000
    assert any(stretch.slips for _, meant in every for stretch in meant)


def answered(hits: float, done: int, *, tokens: int = 100, stops: tuple[str, ...] = (), off: int = 0) -> str:
    meant = stretches(SESSION)
    ((stretch, file),) = states(SESSION, meant)
    prefix = (file[:5] + stretch.text[:done])[: 5 + done - off]
    return "".join(Oracle([(SESSION, meant)], hits).answer(prefix, file[5:], most_tokens=tokens, stops=stops))


def test_an_oracle_that_knows_all_says_what_comes() -> None:
    assert answered(1, 0) == "\nif x:\n    y = tax"
    assert answered(1, 5) == ":\n    y = tax"
    assert answered(1, 11, off=4) == "    y = tax"  # the blanks before the cursor are left to the model
    assert answered(1, 1, stops=("\n",)) == "if x:"
    assert answered(1, 1, tokens=1) == "if x"
    assert answered(1, 18) == ""


def test_an_oracle_that_knows_nothing_is_wrong_until_a_word_is_told() -> None:
    assert not answered(0, 15).startswith("tax")
    assert answered(0, 15) == answered(0, 15)
    meant = [Stretch(0, "a.py", 5, 0, "\nreturned")]
    oracle = Oracle([(SESSION, meant)], 0)
    assert "".join(oracle.answer("x = 1\nret", "\ny = 2\n", most_tokens=9, stops=())) == "urned"
    assert "".join(oracle.answer("never seen", "", most_tokens=9, stops=())).endswith("()")


def test_places_are_in_utf16() -> None:
    text = "a\n𝒳x = 1\n"
    assert position(text, 4) == {"line": 1, "character": 3}
    assert all(offset_of(text, position(text, offset)) == offset for offset in range(len(text) + 1))


def test_all_settings_of_the_rows_exist(tmp_path: Path) -> None:
    found, left_out = known(stage.empty_config(tmp_path))
    assert (found, left_out) == (list(VARIANTS), {})
    assert found[0].name == WHOLE


@pytest.mark.parametrize(
    ("reply", "evaluated", "cancelled"),
    [
        ({"done": "stop", "prompt_tokens": 9, "reused_tokens": 4, "held_tokens": 12, "generated_tokens": 3}, 5, False),
        (
            {"done": "cancelled", "prompt_tokens": 9, "reused_tokens": 4, "held_tokens": 6, "generated_tokens": 0},
            2,
            True,
        ),
        (
            {"done": "cancelled", "prompt_tokens": 9, "reused_tokens": 9, "held_tokens": 9, "generated_tokens": 2},
            0,
            False,
        ),
    ],
)
def test_a_request_that_ends_is_counted(reply: dict[str, Any], evaluated: int, cancelled: bool) -> None:
    wanted = {"event": "ended", "ahead": False, "cancelled": cancelled, "evaluated": evaluated}
    assert counted.ended(reply, ahead=False) == wanted


def test_times_in_short() -> None:
    assert spread([]) == {"median": None, "p95": None}
    assert spread([float(number) for number in range(100)]) == {"median": 49.5, "p95": 95.0}
    assert Tally(characters=10, saved=4).as_json()["saved_share"] == 0.4


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[tuple[Child, str]]:
    recorded = {"sessions": [{"files": dict(SESSION.files), "runs": [[0, "a.py", 5, 0, ["\nz = 3"]]]}]}
    (tmp_path / "r.json").write_text(json.dumps(recorded))
    asked = {"recording": str(tmp_path / "r.json"), "keys": 0, "hits": 1.0, "spread": 0.0, "pace_ms": 0.0}
    async with Child(stage.SERVICE, child_environment()) as child:
        yield child, (await child.ask("serve", **asked, latency_ms=1.0))["url"] + "/api/models/text_infilling"


@needs_uvicorn
async def test_the_service_answers_and_counts(service: tuple[Child, str]) -> None:
    child, url = service
    body = {"inputs": "x = 1<FILL_ME>\ny = 2\n", "stream": True, "parameters": {"max_new_tokens": 9}}
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.post(url, json=body)
        assert (await client.get(url.replace("infilling", "other"))).status_code == 404
    records = [json.loads(line[6:]) for line in response.text.split("\r\n") if line]
    assert "".join(record["generated_text"] for record in records) == "\nz = 3"
    assert records[-1]["finish_reason"] == "eos_token"
    assert await child.ask("reset") == {"begun": 1, "cancelled": 0, "most_alive": 1, "evaluated": 3}
    assert await child.ask("counts") == {"begun": 0, "cancelled": 0, "most_alive": 0, "evaluated": 0}


@needs_uvicorn
async def test_the_service_sees_who_goes_away(tmp_path: Path) -> None:
    asked = {"recording": str(typing_bench.RECORDING), "keys": 1, "hits": 1.0, "spread": 0.0, "pace_ms": 0.0}
    body = {"inputs": "x = 1<FILL_ME>", "parameters": {"max_new_tokens": 9}}
    async with Child(stage.SERVICE, child_environment()) as child, httpx.AsyncClient(trust_env=False) as client:
        url = (await child.ask("serve", **asked, latency_ms=1e9))["url"] + "/api/models/text_infilling"
        for number in (1, 2):
            async with client.stream("POST", url, json=body):
                while (await child.ask("counts"))["cancelled"] < number:
                    pass  # until it waits
        assert (await child.ask("counts"))["begun"] == 2


@needs_uvicorn
@pytest.mark.e2e
def test_a_few_keys_in_a_real_server(tmp_path: Path) -> None:
    text = "\nvalue = compute(alpha, beta)"
    recorded = {"sessions": [{"files": {"a.py": "x = 1\n"}, "runs": [[1, "a.py", 5, 0, [text]]]}]}
    (tmp_path / "r.json").write_text(json.dumps(recorded))
    options = ["--only", "ffm", "--typing", "r.json", "--variant", WHOLE, "--keys", "8", "--speed", "4", "--hits", "1"]
    done = midfill("bench", "typing", *options, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (row,) = found["rows"]["ffm"]
    assert (row["name"], row["characters"], found["left_out"]) == (WHOLE, 8, {})
    assert row["requests"] + row["saved"] >= 8
    assert row["backend"]["begun"] >= row["backend"]["most_alive"] >= 0


def test_rows_as_a_table() -> None:
    tally = Tally(characters=50, saved=10, shown=3, kept=1, after_key=[5.0], after_request=[4.0, 6.0])
    lines = typing_bench.table_of("title", [(WHOLE, tally, stage.Load(2, 1, 1, 700))]).split("\n")
    assert lines[0] == "title: 50 keys; asked, cancelled and tokens of 100"
    assert lines[2].split("  ", 1) == [
        WHOLE,
        "20.0%      3     1        0         0    4.0        2.0      1    1400        5    5            5    6",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--speed", "0"), "--speed must be above 0"),
        (("--variant", "no such row"), "there is no row 'no such row'"),
        (("--typing", "missing.json"), "missing.json cannot be read"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = midfill("bench", "typing", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
