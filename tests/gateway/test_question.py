"""What becomes of a question for each sort of backend, and of its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import pytest

from backends.base import (
    BackendError,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    File,
    Finish,
    InfillPrompt,
    Piece,
    RawPrompt,
    Shape,
)
from completion.prompt.families import BY_NAME, FAMILIES, UNKNOWN
from completion.stopping import through
from lsp_server.gateway.question import Formed, Question, form, shown_prompt, steps_of

QWEN, SMOLLM = BY_NAME["qwen2.5-coder"], BY_NAME["smollm2"]
RAW = Capabilities(frozenset({Shape.RAW}))
INFILL = Capabilities(frozenset({Shape.INFILL}))
CHAT = Capabilities(frozenset({Shape.CHAT}))
LOCAL = Capabilities(frozenset({Shape.RAW, Shape.INFILL}), literal_text=True)
HOLE = Question("m", "before ", " after")
CONTINUED = Question("m", "before ")
TEMPLATE = "<|fim_prefix|>before <|fim_suffix|> after<|fim_middle|>"


def formed(question: Question, family: str, capabilities: Capabilities) -> Formed:
    return form(question, BY_NAME[family], capabilities, blank_keys=False)


async def read(answer: Formed, *deltas: str, stop: tuple[str, ...] = ()) -> str:
    async def stream() -> AsyncGenerator[Delta, None]:
        for text in deltas:
            yield Delta(text)
        yield Delta("", Finish.STOP)

    async with aclosing(through(stream(), steps_of(answer, stop))) as cleaned:
        return "".join([delta.text async for delta in cleaned])


# --- a hole


def test_a_hole_is_shown_in_the_way_the_backend_takes() -> None:
    assert formed(HOLE, "qwen2.5-coder", INFILL).built.prompt == InfillPrompt("before ", " after")
    raw = formed(HOLE, "qwen2.5-coder", RAW).built.prompt
    assert isinstance(raw, RawPrompt)
    assert raw.text == TEMPLATE
    chat = formed(HOLE, "unknown", CHAT).built
    assert isinstance(chat.prompt, ChatPrompt)
    assert chat.reply is not None
    assert chat.reply.prose is False  # infilling is of code


@pytest.mark.parametrize("family", ["smollm2", "unknown"])
def test_a_model_that_cannot_be_shown_a_hole_refuses(family: str) -> None:
    with pytest.raises(BackendError) as raised:
        formed(HOLE, family, RAW)
    assert raised.value.kind is ErrorKind.INFILL_UNSUPPORTED
    both = Capabilities(frozenset({Shape.RAW, Shape.CHAT}))
    assert isinstance(formed(HOLE, family, both).built.prompt, ChatPrompt)
    assert formed(CONTINUED, family, RAW).built.prompt == RawPrompt((Piece("before "),))


def test_a_hole_at_the_end_is_still_one() -> None:
    prompt = formed(replace(HOLE, suffix=""), "qwen2.5-coder", RAW).built.prompt
    assert isinstance(prompt, RawPrompt)
    assert prompt.text == "<|fim_prefix|>before <|fim_suffix|>\n<|fim_middle|>"


# --- a continuation


def test_a_continuation_has_no_hole() -> None:
    assert formed(CONTINUED, "qwen2.5-coder", LOCAL).built.prompt == RawPrompt((Piece("before "),))
    assert formed(CONTINUED, "qwen2.5-coder", INFILL).built.prompt == InfillPrompt("before ", "")


def test_a_continuation_ends_at_every_special_token_and_keeps_none_of_the_user() -> None:
    answer = formed(replace(CONTINUED, prefix="a <|fim_middle|> b"), "qwen2.5-coder", RAW)
    assert answer.built.prompt == RawPrompt((Piece("a <\u200b|fim_middle|> b"),))
    assert "<|fim_middle|>" in answer.built.terminators


def test_files_stand_before_it() -> None:
    question = replace(CONTINUED, files=(File("a.py", "x = 1\n"),), repo="r", language="python")
    prompt = formed(question, "qwen2.5-coder", LOCAL).built.prompt
    assert isinstance(prompt, RawPrompt)
    assert prompt.text == "<|repo_name|>r\n<|file_sep|>a.py\nx = 1\n<|file_sep|>untitled\nbefore "


# --- a prompt that may hold special tokens


def test_special_tokens_are_meant_as_such() -> None:
    question = Question("m", "<file_sep>a.py\nx = 1 </s>", verbatim=True)
    answer = formed(question, "smollm2", RAW)
    assert answer.built.prompt == RawPrompt((Piece("<file_sep>", special=True), Piece("a.py\nx = 1 </s>")))
    assert answer.verbatim


def test_a_template_is_a_question_for_a_backend_with_fields() -> None:
    question = Question("m", TEMPLATE, verbatim=True)
    assert formed(question, "qwen2.5-coder", INFILL).built.prompt == InfillPrompt("before ", " after")
    for capabilities in (RAW, LOCAL):  # these take it as it is
        prompt = formed(question, "qwen2.5-coder", capabilities).built.prompt
        assert isinstance(prompt, RawPrompt)
        assert prompt.text == TEMPLATE
        assert [piece.text for piece in prompt.pieces if piece.special] == [
            "<|fim_prefix|>",
            "<|fim_suffix|>",
            "<|fim_middle|>",
        ]


def test_what_stands_before_a_template_goes_with_the_prefix() -> None:
    prompt = formed(Question("m", f"<|file_sep|>a\nx\n{TEMPLATE}", verbatim=True), "qwen2.5-coder", INFILL).built.prompt
    assert prompt == InfillPrompt("<\u200b|file_sep|>a\nx\nbefore ", " after")


@pytest.mark.parametrize(
    "text",
    [
        "<|fim_prefix|>a<|fim_suffix|>b",
        "<|fim_suffix|>a<|fim_prefix|>b<|fim_middle|>",
        "<|fim_prefix|>a<|fim_middle|>",
        f"{TEMPLATE} and more",
        "<|fim_prefix|>" * 80_000 + "<|fim_suffix|>" * 80_000,
    ],
    ids=range(5),
)
def test_what_is_no_template_is_text(text: str) -> None:
    prompt = formed(Question("m", text, verbatim=True), "qwen2.5-coder", INFILL).built.prompt
    assert isinstance(prompt, InfillPrompt)
    assert (prompt.suffix, prompt.prefix.replace("\u200b", "")) == ("", text)


@pytest.mark.parametrize("suffix", [" after\n", ""])
@pytest.mark.parametrize("family", [each for each in FAMILIES if each.fim], ids=lambda each: each.name)
def test_a_shown_prompt_is_understood(family: object, suffix: str) -> None:
    assert isinstance(family, type(QWEN))
    shown = shown_prompt(replace(HOLE, suffix=suffix), family, INFILL)
    prompt = form(Question("m", shown, verbatim=True), family, INFILL, blank_keys=False).built.prompt
    assert isinstance(prompt, InfillPrompt)
    assert (prompt.prefix.endswith("before "), prompt.suffix) == (True, suffix)


def test_a_prompt_is_shown_for_unknown_families_too_if_they_infill() -> None:
    shown = shown_prompt(HOLE, UNKNOWN, CHAT)
    assert shown == "<fim_prefix>before <fim_suffix> after<fim_middle>"
    assert isinstance(formed(Question("m", shown, verbatim=True), "unknown", CHAT).built.prompt, ChatPrompt)
    with pytest.raises(BackendError) as raised:
        shown_prompt(HOLE, SMOLLM, RAW)
    assert raised.value.kind is ErrorKind.INFILL_UNSUPPORTED
    assert shown_prompt(CONTINUED, SMOLLM, RAW) == "before "


# --- keys


@pytest.mark.parametrize("question", [replace(HOLE), replace(CONTINUED), replace(CONTINUED, verbatim=True)])
def test_keys_are_blanked_where_it_is_wished(question: Question) -> None:
    secret = "sk-" + "a1B2" * 12
    question = replace(question, prefix=f'api_key = "{secret}"\n')
    for blank_keys in (True, False):
        prompt = form(question, QWEN, LOCAL, blank_keys=blank_keys).built.prompt
        text = (
            prompt.prefix if isinstance(prompt, InfillPrompt) else prompt.text if isinstance(prompt, RawPrompt) else ""
        )
        assert (secret in text) is not blank_keys
        assert len(text.rstrip("\n")) == len(question.prefix.rstrip("\n"))


# --- the answer


async def test_an_answer_is_cut_and_mended_and_nothing_else() -> None:
    answer = formed(HOLE, "qwen2.5-coder", INFILL)
    assert await read(answer, "\n  a \n", "\n", "<|im", "_end|>b") == "\n  a \n\n"
    assert await read(answer, "<\u200b|im_", "end|> ", "EN", "D", stop=("END",)) == "<|im_end|> "
    assert await read(answer, "EN", "d END", "x", stop=("END",)) == "ENd "


async def test_line_ends_are_those_of_the_question() -> None:
    answer = formed(replace(HOLE, prefix="a\r\n"), "qwen2.5-coder", INFILL)
    assert await read(answer, "1\n2\r", "\n3\n\r\n", stop=("\r\n\r\n",)) == "1\r\n2\r\n3"
    assert await read(formed(HOLE, "qwen2.5-coder", INFILL), "1\r", "\n2") == "1\n2"
    assert await read(formed(Question("m", "a\r\n", verbatim=True), "smollm2", RAW), "1\r\n2") == "1\r\n2"


async def test_what_a_client_made_harmless_stays_so() -> None:
    """It will mend it; a token in its place would end its answer."""
    prompt = "<|fim_prefix|>x <\u200b|im_end|> <|fim_suffix|> y<|fim_middle|>"
    for capabilities in (INFILL, RAW):
        answer = formed(Question("m", prompt, verbatim=True), "qwen2.5-coder", capabilities)
        assert await read(answer, '"<\u200b|im_end|>"') == '"<\u200b|im_end|>"'


async def test_of_a_chat_only_the_code_is_left() -> None:
    answer = formed(HOLE, "unknown", CHAT)
    assert await read(answer, "Here is the code:\n``", "`python\nx = 1\n", "```\nIt works.") == "x = 1"


async def test_what_a_terminal_obeys_is_taken_out() -> None:
    answer = formed(HOLE, "qwen2.5-coder", INFILL)
    assert await read(answer, "a\x1b[2J", "b\x7f\x9b31m\x85", "\tç\xa0\f") == "a[2Jb31m\tç\xa0\f"


async def test_what_shows_code_in_another_order_or_is_half_a_character_is_taken_out() -> None:
    answer = formed(HOLE, "qwen2.5-coder", INFILL)
    assert await read(answer, "a\u202eb\u2066", "c\ud83d", "d\u200fא\U0001f600") == "abcd\u200fא\U0001f600"
