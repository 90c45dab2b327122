"""`midfill bench scenarios`: the scenarios themselves, what is counted, and the goals."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from completion import syntax
from lsp_server.bench import scenarios
from lsp_server.bench.scenario_files import Answer, Scenario, ScenarioError, parse, read_all
from tests.lsp_server.commandline import midfill

ALL = read_all()


def scenario(*, quiet: str = "", results: tuple[str, ...] = (), text: str = "x = \n", at: int = 4) -> Scenario:
    return Scenario("name", "python", "a.py", text, at, (Answer("unknown", "1"),), quiet, results)


def test_there_are_enough_of_both_kinds() -> None:
    quiet = sum(bool(each.quiet) for each in ALL)
    assert len(ALL) >= 120
    assert 0.4 <= quiet / len(ALL) <= 0.6
    assert sum(count >= 15 for count in Counter(each.language for each in ALL).values()) >= 7
    assert len({each.language for each in ALL}) >= 8
    assert len({answer.family for each in ALL for answer in each.answers}) >= 8


@pytest.mark.parametrize(
    ("answer", "result"), [("1", ("shown", True, True)), ("2", ("shown", False, False)), ("", ("empty", False, False))]
)
async def test_a_suggestion_is_right_if_it_is_exact(answer: str, result: tuple[str, bool, bool]) -> None:
    found = await scenarios.ask(scenario(results=("x = 1\n", "x = 3\n")), Answer("qwen2.5-coder", answer))
    assert (found.reason, found.exact, found.right) == result


@pytest.mark.parametrize(("answer", "right"), [("1", False), ("", True)])
async def test_silence_is_right_where_it_is_asked_for(answer: str, right: bool) -> None:
    found = await scenarios.ask(scenario(quiet="test"), Answer("qwen2.5-coder", answer))
    assert found.right is right


async def test_nothing_is_read_beyond_a_stop_string_or_the_limit_of_tokens() -> None:
    found = await scenarios.ask(scenario(results=("x = 1\n",)), Answer("codellama", "1 <EOT> and more"))
    assert found.right
    long = await scenarios.ask(scenario(), Answer("unknown", "".join(f"name_{n}\n" for n in range(40))))
    assert 100 < len(long.text) < 40 * 8


async def test_chat_models_are_asked_in_a_chat() -> None:
    found = await scenarios.ask(scenario(results=("x = 1\n",)), Answer("chat", "Sure:\n```python\n1\n```\nDone."))
    assert found.right


async def test_what_was_deleted_is_told_to_the_engine() -> None:
    source = """
        [[scenario]]
        name = "n"
        language = "python"
        path = "a.py"
        before = "a\\nf(x)⟦|⟧\\nb\\n"
        text = "a\\n⟦|⟧\\nb\\n"
        quiet = "after deletion"
        answers = [["unknown", "f(x)"]]
    """
    (read,) = parse(source, "test")
    assert (read.deleted, read.offset) == ("f(x)", 2)


def test_rates() -> None:
    shown, silent = scenario(results=("x = 1\n",)), scenario(quiet="test")
    answer = shown.answers[0]
    results = [
        scenarios.Result(shown, answer, "shown", "1", exact=True),
        scenarios.Result(shown, answer, "shown", "2", exact=False),
        scenarios.Result(shown, answer, "empty", "", exact=False),
        scenarios.Result(shown, answer, "empty", "", exact=False),
        scenarios.Result(silent, answer, "mid-word", "", exact=False),
    ]
    found = scenarios.score(results)
    assert (found.show, found.quiet, found.exact) == (0.5, 1.0, 0.5)
    assert found.score == pytest.approx(2 / 3)
    assert scenarios.by_group(results)["test"] == {"mid-word": 1}
    assert scenarios.score(results[-1:]).score is None
    assert scenarios.score(results[2:]).score == 0.0


@pytest.mark.parametrize(
    "line",
    [
        'text = "x = ⟦|⟧"\nshow = "1"\nshown = "typo"\nanswers = [["chat", "1"]]',
        'text = "x = ⟦|⟧"\nanswers = [["chat", "1"]]',
        'text = "x = ⟦|⟧"\nshow = "1"\nquiet = "both"\nanswers = [["chat", "1"]]',
        'text = "x = "\nshow = "1"\nanswers = [["chat", "1"]]',
        'text = "x = ⟦|⟧"\nshow = "1"\nanswers = [["no-such-family", "1"]]',
        'text = "x = ⟦|⟧"\nshow = "1"\nanswers = []',
        'text = "x = ⟦|⟧"\nbefore = "another text⟦|⟧"\nquiet = "x"\nanswers = [["chat", "1"]]',
        'text = "x = ⟦|⟧"\nshow = 1',
        "text = ",
    ],
)
def test_bad_scenarios_are_rejected(line: str) -> None:
    with pytest.raises(ScenarioError):
        list(parse(f'language = "python"\npath = "a.py"\n[[scenario]]\nname = "x"\n{line}\n', "test"))


def test_json_and_tables(tmp_path: Path) -> None:
    done = midfill("bench", "scenarios", "--only", "mid-identifier", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    answers = sum(len(each.answers) for each in ALL if each.quiet == "mid-identifier")
    assert (found["show"], found["quiet"], found["answers"]) == (None, 1.0, answers)
    assert found["reasons"] == {"mid-identifier": {"mid-word": answers}}


def test_tables() -> None:
    shown, silent = scenario(results=("x = 1\n",)), scenario(quiet="in prose")
    results = [
        scenarios.Result(shown, shown.answers[0], "shown", "1", exact=True),
        scenarios.Result(silent, shown.answers[0], "shown", "two\nlines", exact=False),
    ]
    rates, reasons, wrong = scenarios.shown(results).split("\n\n")
    heads, python, every, goals = rates.split("\n")
    assert heads.split() == ["language", "scenarios", "answers", "show", "exact", "quiet", "score"]
    assert python.split() == ["python", "1", "2", "100.0%", "100.0%", "0.0%", "0.0%"]
    assert every.split()[3:] == python.split()[3:]
    assert goals.split() == ["goal", "90%", "95%", "90%"]
    assert [line.split()[-1] for line in reasons.split("\n")] == ["shown", "1", "1"]
    assert wrong.split("\n")[1].split() == ["python:", "name", "unknown", "shown", "two\\nlines"]


def test_nothing_to_ask_is_wrong_usage(tmp_path: Path) -> None:
    done = midfill("bench", "scenarios", "--only", "no such thing", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("trees", [True, False])
async def test_the_goals_are_met(trees: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not trees:
        monkeypatch.setattr(syntax, "_parser", lambda language_id: None)
    found = scenarios.score(await scenarios.run(ALL))
    assert (found.show or 0) >= scenarios.GOALS["show"]
    assert (found.quiet or 0) >= scenarios.GOALS["quiet"]
    assert (found.exact or 0) >= scenarios.GOALS["exact"]
