"""Golden files: prompts of every family, where answers stop, what the filters leave."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.base import Capabilities, ChatPrompt, Delta, File, Finish, InfillPrompt, RawPrompt, Shape
from completion import indents, postprocess
from completion.prompt import Built, Material, build
from completion.prompt.families import BY_NAME, FAMILIES, UNMISTAKABLE, Family
from completion.stopping import CutTerminators, Replace, Step, Stream, UntilLine, stop_early, through
from completion.types import Reason
from tests.completion.golden import ROOT, BadCaseError, Case, at_cursor, cases, load, window_of

PROMPT_KEYS = ("text", "language", "path", "repo", "files", "shape", "literal", "extra_files", "line")
PROMPT_EXPECTED = ("prompt", "special", "prefix", "suffix", "extra", "stops", "system", "user")
STOPPING_KEYS = ("text", "answer", "family", "literal", "line", "max_lines", "chat", "language")
STOPPING_EXPECTED = ("expect", "early")
FILTER_KEYS = ("text", "answer", "language", "blind", "automatic", "deleted", "before", "after", "by")
FILTER_EXPECTED = ("expect", "reason")


def built(case: Case, family: Family) -> Built:
    text, offset = at_cursor(case["text"])
    material = Material(
        prefix=text[:offset],
        suffix=text[offset:],
        language_id=case.get("language", "python"),
        path=case.get("path"),
        repo=case.get("repo"),
        extra=tuple(File(**file) for file in case.get("files", ())),
        block=not case.get("line", False),
    )
    capabilities = Capabilities(
        frozenset({Shape(case.get("shape", "raw"))}),
        literal_text=case.get("literal", False),
        extra_files=case.get("extra_files", False),
    )
    return build(material, family, capabilities)


@pytest.mark.parametrize("case", cases("prompt", keys=(*PROMPT_KEYS, "family"), expectations=PROMPT_EXPECTED))
def test_prompt(case: Case) -> None:
    made = built(case, BY_NAME[case["family"]])
    prompt = made.prompt
    found: Case = {"stops": list(made.stops)}
    if isinstance(prompt, RawPrompt):
        found |= {"prompt": prompt.text, "special": [piece.text for piece in prompt.pieces if piece.special]}
    elif isinstance(prompt, InfillPrompt):
        found |= {"prefix": prompt.prefix, "suffix": prompt.suffix, "extra": [file.path for file in prompt.extra]}
    elif isinstance(prompt, ChatPrompt):
        assert [message.role for message in prompt.messages] == ["system", "user"]
        found |= {message.role: message.content for message in prompt.messages}
    expected = {key: case[key] for key in PROMPT_EXPECTED if key in case}
    assert {key: found.get(key) for key in expected} == expected


def test_every_family_has_a_golden_prompt() -> None:
    seen = {
        parameter.values[0]["family"]
        for parameter in cases("prompt", keys=(*PROMPT_KEYS, "family"), expectations=PROMPT_EXPECTED)
    }
    assert seen == {family.name for family in FAMILIES}


async def deltas(parts: list[str]) -> Stream:
    for part in parts[:-1]:
        yield Delta(part)
    yield Delta(parts[-1], Finish.STOP)


async def stopped(case: Case, parts: list[str]) -> tuple[str, Finish | None]:
    shape = {"shape": "chat"} if case.get("chat") else {}
    asked = {"text": case["text"], "literal": case.get("literal", False), "language": case.get("language", "python")}
    made = built(asked | shape, BY_NAME[case.get("family", "unknown")])
    window = window_of(case["text"])
    stream = stop_early(
        deltas(parts),
        terminators=made.terminators,
        mends=made.mends,
        block=not case.get("line", False),
        max_lines=case.get("max_lines", 40),
        next_line=next((line for line in window.suffix.split("\n")[1:] if line.strip()), ""),
        lead=window.lead,
        language_id=asked["language"],
        reply=made.reply,
        unit=partial(indents.step, window, asked["language"]),
    )
    got = [delta async for delta in stream]
    return "".join(delta.text for delta in got), got[-1].finish


STOPPING = cases("stopping", keys=STOPPING_KEYS, expectations=STOPPING_EXPECTED)


@pytest.mark.parametrize("case", STOPPING)
async def test_stopping_split_at_every_position(case: Case) -> None:
    answer = case["answer"]
    splits = [[answer[:at], answer[at:]] for at in range(len(answer) + 1)]
    for parts in (*splits, list(answer) or [""], ["", *answer, ""]):
        text, finish = await stopped(case, parts)
        if "expect" in case:
            assert text == case["expect"], parts
        if case.get("early") is False:
            assert finish is Finish.STOP, parts
    if case.get("early"):
        # One delta more than is needed: the stream ends before it is read.
        assert (await stopped(case, [*answer, "more"]))[1] is None


def test_what_was_held_back_is_not_lost_when_the_answer_ends() -> None:
    for step, rest in ((CutTerminators(["<EOT>"]), "<EO"), (Replace({"<EO": "x", "<EOT>": "y"}), "x")):
        assert step.feed("a <EO", last=False) == ("a ", False)
        assert step.feed("", last=True) == (rest, False)


async def test_a_step_that_ends_the_answer_gives_free_what_later_steps_held() -> None:
    steps: list[Step] = [CutTerminators(["<EOT>"]), UntilLine("return x", "")]

    async def answer() -> Stream:
        yield Delta("retu")
        yield Delta("<EOT> and more")

    assert [delta.text async for delta in through(answer(), steps)] == ["", "retu"]


@settings(deadline=None)  # a busy machine is no fault
@given(
    pieces=st.lists(
        st.sampled_from(
            ["<EOT>", " ", "<", "E", "OT>", "<|fim_", "pad|>", "\n", "\r", "}", "    return x", "a(", "é", "<\u200b/s>"]
        ),
        max_size=12,
    ),
    family=st.sampled_from(["codellama", "qwen2.5-coder", "unknown"]),
    line=st.booleans(),
    data=st.data(),
)
async def test_stopping_does_not_depend_on_the_split(
    pieces: list[str], family: str, line: bool, data: st.DataObject
) -> None:
    answer = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    parts = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    case = {"text": "def f():\n    ⟦|⟧\n    return x\n}\n", "family": family, "line": line}
    whole, _ = await stopped(case, [answer])
    assert (await stopped(case, parts))[0] == whole


@settings(deadline=None)  # a busy machine is no fault
@given(
    pieces=st.lists(
        st.sampled_from(
            [
                "Here is the code:",
                "We need (all) of it.",
                "\n",
                " ",
                "```",
                "python",
                "`",
                "~~~",
                "<think>",
                "</think>",
                "</thi",
                "<HOLE/>",
                "def f():",
                "    ",
                "x = ",
                "1",
                "return x",
                "<\u200b|im_end|>",
                "<|im_end|>",
            ]
        ),
        max_size=14,
    ),
    language=st.sampled_from(["python", "markdown"]),
    line=st.booleans(),
    data=st.data(),
)
async def test_reading_a_chat_does_not_depend_on_the_split(
    pieces: list[str], language: str, line: bool, data: st.DataObject
) -> None:
    answer = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(answer)), max_size=8)))
    parts = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
    case = {"text": "def f():\n    x = ⟦|⟧\n    return x\n", "chat": True, "language": language, "line": line}
    whole, _ = await stopped(case, [answer])
    assert (await stopped(case, parts))[0] == whole


@pytest.mark.parametrize("case", cases("postprocess", keys=FILTER_KEYS, expectations=FILTER_EXPECTED))
def test_filters(case: Case) -> None:
    around = postprocess.Around(
        window_of(case["text"]),
        UNMISTAKABLE,
        case.get("language", "python"),
        blind=case.get("blind", False),
        automatic=case.get("automatic", True),
        deleted=case.get("deleted", ""),
    )
    begun = postprocess.begin(case["answer"], around)
    result = postprocess.finish(begun.text, around)
    if "reason" in case:
        assert result.reason is Reason(case["reason"])
    else:
        assert (result.text, result.reason) == (case["expect"], None)
    assert (result.before, result.after) == (case.get("before", 0), case.get("after", 0))
    if "by" in case:
        assert case["by"] in (*begun.filters, *result.filters)


@pytest.mark.parametrize(
    "text",
    [
        "[[case]]\nname = 'typo'\nanswre = 'x'\nexpect = 'x'\n",
        "[[case]]\nname = 'asserts nothing'\nanswer = 'x'\n",
        "[[case]]\nexpect = 'nameless'\n",
        "[[case]]\nname = 'twice'\nexpect = ''\n[[case]]\nname = 'twice'\nexpect = ''\n",
        "[[cases]]\nname = 'x'\nexpect = ''\n",
    ],
)
def test_bad_cases_are_rejected(text: str) -> None:
    with pytest.raises(BadCaseError):
        load(text, keys=("answer",), expectations=("expect",))


def test_only_toml_files_are_in_the_golden_folders() -> None:
    stray = [p.name for f in ("prompt", "stopping", "postprocess") for p in (ROOT / f).iterdir() if p.suffix != ".toml"]
    assert stray == []
