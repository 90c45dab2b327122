"""What is true of all filters: they drop, cut and indent, invent nothing, act in a golden case, and are told of."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from completion import postprocess
from completion.prompt.families import UNMISTAKABLE
from completion.types import Completion, Reason, Window
from tests.completion.desk import Desk, reason
from tests.completion.golden import ROOT, cases, window_of
from tests.completion.test_golden import FILTER_EXPECTED, FILTER_KEYS

PIECES = [
    "def f(a):",
    "if a:",
    "else:",
    "return a",
    "end",
    "fi",
    "x = ",
    "foo(",
    ")",
    "}",
    "{",
    "]",
    '"',
    "'''",
    "\n",
    "\n\n",
    "\r\n",
    "    ",
    "   ",
    "\t",
    " ",
    "a, b",
    "# c",
    ";",
    "<|fim_middle|>",
    "<|fim_",
    "</s>",
    "▅▅▅▅▅▅▅▅▅▅▅▅▅",
    "The first of all the items.",
    "é",
    "😀",
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
LANGUAGES = ["python", "go", "javascript", "ruby", "shellscript", "lua", "html", "yaml", "makefile", "c", "rust", "x"]


def tokens(text: str) -> str:
    return "".join(text.split())


def is_part(shown: str, answer: str) -> bool:
    """Whether `shown` can be had from `answer` by leaving things out."""
    left = iter(answer)
    return all(character in left for character in shown)


@settings(deadline=None)  # a busy machine is no fault
@given(
    before=TEXT,
    after=TEXT,
    answer=TEXT,
    language=st.sampled_from(LANGUAGES),
    automatic=st.booleans(),
    blind=st.booleans(),
)
def test_nothing_is_invented(before: str, after: str, answer: str, language: str, automatic: bool, blind: bool) -> None:
    prefix, suffix = (text.replace("\r\n", "\n") for text in (before, after))
    window = Window(prefix, suffix, newline="\r\n")
    around = postprocess.Around(window, UNMISTAKABLE, language, blind=blind, automatic=automatic)
    begun = postprocess.begin(answer, around)
    result = postprocess.finish(begun.text, around)
    if result.reason is not None:
        assert result.text == ""
        return
    # What is shown is one piece of the answer, but for white space and lines that echo what stands above.
    assert tokens(result.text) in tokens(answer)
    assert is_part(tokens(result.text), tokens(answer))
    assert result.text.strip()
    assert "\n" not in result.text.replace("\r\n", "")
    # The range stays on the cursor's line, and takes no more than white space before it.
    replaced = window.lead[len(window.lead) - result.before :]
    assert 0 <= result.before <= len(window.lead)
    assert not replaced.strip()
    assert 0 <= result.after <= len(window.rest)
    # What was there behind the cursor is in the text that takes its place.
    assert is_part(window.rest[: result.after], result.text)


@settings(deadline=None)  # a busy machine is no fault
@given(answer=TEXT, before=TEXT, after=TEXT, language=st.sampled_from(LANGUAGES))
def test_what_is_shown_is_shown_again(answer: str, before: str, after: str, language: str) -> None:
    window = Window(before.replace("\r\n", "\n"), after.replace("\r\n", "\n"))
    around = postprocess.Around(window, UNMISTAKABLE, language, automatic=True)
    begun = postprocess.begin(answer, around)
    first = postprocess.finish(begun.text, around)
    assert postprocess.finish(begun.text, around) == first


def test_every_filter_is_told_of_in_a_golden_case() -> None:
    told = {
        parameter.values[0].get("by")
        for parameter in cases("postprocess", keys=FILTER_KEYS, expectations=FILTER_EXPECTED)
    }
    every = {postprocess.name_of(each) for each in (*postprocess.BEGINNING, *postprocess.PIPELINE)}
    assert every - told == set()


def test_every_filter_has_a_golden_file_of_its_own() -> None:
    files = {path.stem for path in (ROOT / "postprocess").glob("*.toml")}
    every = {postprocess.name_of(each) for each in (*postprocess.BEGINNING, *postprocess.PIPELINE)}
    assert every - files == set()


async def test_the_trace_tells_what_stopped_changed_and_silenced_an_answer() -> None:
    desk = Desk([" a = 1\n    b = 2\nc = 3\n"])
    assert isinstance(await desk.ask("def f():\n    ⟦|⟧\n"), Completion)
    assert desk.trace is not None
    assert desk.trace.filters == ("stop:Scope", "leading_blank")
    assert desk.trace.saved_tokens is not None
    assert desk.trace.saved_tokens > 0
    # An answer from the cache says so, too.
    assert isinstance(await desk.ask("def f():\n    ⟦|⟧\n"), Completion)
    assert desk.trace.filters == ("stop:Scope", "leading_blank")
    silent = Desk(["▅" * 40])
    assert reason(await silent.ask("x = ⟦|⟧\n")) is Reason.REPETITION
    assert silent.trace is not None
    assert silent.trace.filters == ("repetition",)


async def test_a_suggestion_takes_the_place_of_what_stands_beside_the_cursor() -> None:
    outcome = await Desk(["a).bar()"]).ask("x = foo(⟦|⟧)\n")
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.start, outcome.end) == ("a).bar()", 8, 9)
    desk = Desk(["else:\n        b()"])
    outcome = await desk.ask("if a:\n    a()\n    ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.start, outcome.end) == ("else:\n        b()", 14, 18)
    # Typed on where the cursor was, it still goes to where it belongs.
    outcome = await desk.ask("if a:\n    a()\n    el⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.start, outcome.end) == ("else:\n        b()", 14, 20)


async def test_the_time_for_more_than_a_line() -> None:
    line, more = asyncio.Event(), asyncio.Event()
    desk = Desk(["a = 1\n", line, "b = 2\n", more, "c = ", "3\nd = 4\n"], time_budget_ms=500)
    task = desk.begin("def f():\n    pass\n\n⟦|⟧\n")
    for event in (line, more):
        await desk.clock.advance(0.4)
        event.set()
    outcome = await task
    assert isinstance(outcome, Completion)
    assert outcome.text == "a = 1\nb = 2"
    assert desk.trace is not None
    assert desk.trace.filters[0] == "stop:Budget"


async def test_an_answer_without_a_whole_line_has_time() -> None:
    late = asyncio.Event()
    desk = Desk(["value = f(", late, "1, 2)"], time_budget_ms=500)
    task = desk.begin("def f():\n    pass\n\n⟦|⟧\n")
    await desk.clock.advance(5)
    late.set()
    outcome = await task
    assert isinstance(outcome, Completion)
    assert outcome.text == "value = f(1, 2)"


@pytest.mark.parametrize("marked", ["⟦|⟧\n", "x⟦|⟧\n"])
def test_nothing_is_made_of_nothing(marked: str) -> None:
    around = postprocess.Around(window_of(marked))
    assert postprocess.finish(postprocess.begin("", around).text, around).reason is Reason.EMPTY


BELOW = {
    "go": ("\t", "\t\treturn fmt.Errorf(path)", "\t}"),
    "python": ("    ", "        return format(path)", "    raise ValueError(path)"),
    "ruby": ("  ", "    raise ArgumentError", "  end"),
    "java": ("    ", "        return String.valueOf(path);", "    }"),
    "shellscript": ("  ", '    echo "$path: not found"', "  fi"),
    "html": ("  ", '    <li class="last">path</li>', "  </ul>"),
}


@pytest.mark.parametrize("language", BELOW)
@pytest.mark.parametrize("form", ["same", "trailing", "shallower", "tabs", "more", "cut", "blank"])
def test_lines_that_follow_are_not_shown_again(language: str, form: str) -> None:
    indent, line, closing = BELOW[language]
    new = f"{indent * 2}first_line(one)"
    repeated = {
        "same": line,
        "trailing": f"{line}  ",
        "shallower": line[len(indent) :],
        "tabs": "\t\t" + line.strip(),
        "more": f"{line}\n{closing}\n\n{indent}something_else(2)",
        "cut": line[:-3],
        "blank": f"\n{line}",
    }[form]
    window = window_of(f"{indent}above:\n{indent * 2}⟦|⟧\n{line}\n{closing}\n")
    around = postprocess.Around(window, UNMISTAKABLE, language, automatic=True)
    answer = f"{new.strip()}\n{repeated}"
    if form == "more":  # such an answer is ended at the line that follows
        answer = answer[: answer.index(line)]
    begun = postprocess.begin(answer, around)
    assert postprocess.finish(begun.text, around).text == new.strip()


@pytest.mark.parametrize("token", UNMISTAKABLE)
async def test_no_special_token_is_shown(token: str) -> None:
    for answer in (f"1{token}", f"1{token}2\n", f"1{token}{token}", f"1{token[:-1]}"):
        outcome = await Desk([answer]).ask("x = ⟦|⟧\n")
        assert isinstance(outcome, Completion)
        assert outcome.text == "1", answer
    # Split over deltas, and by themselves.
    outcome = await Desk(["1", *token, "2"]).ask("x = ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "1"
    assert reason(await Desk([token]).ask("x = ⟦|⟧\n")) is Reason.EMPTY


@pytest.mark.parametrize("column", ["", "\t", "\t\t"])
def test_tabs_stay_tabs_wherever_the_cursor_is(column: str) -> None:
    window = window_of(f"func f() {{\n\tif a {{\n\t\tb()\n\t}}\n\tif c {{\n{column}⟦|⟧\n\t}}\n}}\n")
    around = postprocess.Around(window, UNMISTAKABLE, "go", automatic=True)
    for unit in ("\t", "    ", "  "):
        answer = f"{unit * 2}d()\n{unit * 2}e()"[len(column) and len(unit) * len(column) :]
        result = postprocess.finish(postprocess.begin(answer, around).text, around)
        lines = (window.lead + result.text).split("\n")
        assert [line[: len(line) - len(line.lstrip())] for line in lines] == ["\t\t", "\t\t"], (unit, result)
