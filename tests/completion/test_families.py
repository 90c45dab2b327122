"""Model families: guessing by name, what the table must hold, special tokens made harmless."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.base import (
    BackendError,
    Capabilities,
    ChatPrompt,
    ErrorKind,
    InfillPrompt,
    RawPrompt,
    Shape,
    SilentObserver,
)
from completion.prompt import Material, build
from completion.prompt.families import BY_NAME, FAMILIES, UNMISTAKABLE, Family, choose
from completion.prompt.sanitize import Sanitizer


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("qwen2.5-coder-7b-32k", "qwen2.5-coder"),
        ("Qwen/Qwen2.5-Coder-1.5B", "qwen2.5-coder"),
        ("qwen2.5-coder:7b-base", "qwen2.5-coder"),
        ("Qwen3-Coder-30B-A3B-Instruct", "qwen3-coder"),
        ("qwen2.5-7b-instruct", "unknown"),
        ("CodeQwen1.5-7B", "codeqwen1.5"),
        ("codellama-7b", "codellama"),
        ("meta-llama/CodeLlama-13b-hf", "codellama"),
        ("codellama:34b", "unknown"),
        ("CodeLlama-7b-Python-hf", "unknown"),
        ("bigcode/starcoder2-3b", "starcoder2"),
        ("bigcode/starcoderbase-1b", "starcoder"),
        ("santacoder", "santacoder"),
        ("deepseek-coder-6.7b-base", "deepseek-coder"),
        ("DeepSeek-V3", "deepseek-coder"),
        ("deepseek-r1-distill-llama", "unknown"),
        ("codegemma-2b", "codegemma"),
        ("codestral-latest", "codestral"),
        ("granite-3b-code-base", "granite-code"),
        ("granite-code:8b", "granite-code"),
        ("granite-4.0-h-tiny", "granite-4"),
        ("granite-34b-code-base", "granite-code"),
        ("granite-3.1-8b-instruct", "unknown"),
        ("stable-code-3b", "stable-code"),
        ("Refact-1_6B-fim", "refact"),
        ("my-refactoring-model", "unknown"),
        ("codegeex4-all-9b", "codegeex4"),
        ("JetBrains/Mellum-4b-base", "mellum-4b"),
        ("Seed-Coder-8B-Base", "seed-coder"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2"),
        ("Yi-Coder-9B", "yi-coder"),
        ("", "unknown"),
    ],
)
def test_guess(model: str, family: str) -> None:
    assert choose("", model, SilentObserver()).name == family


def test_a_setting_beats_the_name() -> None:
    assert choose("codellama-spm", "qwen2.5-coder", SilentObserver()).name == "codellama-spm"


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_rows(family: Family) -> None:
    if family.fim:
        assert family.fim.count("{prefix}") == 1
        assert family.fim.count("{suffix}") == 1
    assert family.stops
    assert set(family.stops) <= set(family.terminators)
    # Where one terminator is found another must not be about to begin earlier: the cut would depend on the split.
    for one in family.terminators:
        for two in family.terminators:
            assert one == two or one not in two or two.endswith(one)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@given(text=st.text(max_size=20), data=st.data())
def test_harmless_and_back(family: Family, text: str, data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.sampled_from(family.specials), max_size=4))
    given_text = text.join(["", *tokens, ""])
    sanitizer = Sanitizer(family.specials)
    clean = sanitizer.clean(given_text)
    assert not any(token in clean for token in family.specials)
    for harmless, token in sanitizer.broken.items():
        clean = clean.replace(harmless, token)
    assert clean == given_text


def test_without_tokens_nothing_is_changed() -> None:
    assert Sanitizer(()).clean("<|endoftext|>") == "<|endoftext|>"


def test_tags_of_other_languages_are_not_unmistakable() -> None:
    assert not {"</s>", "<PRE>", "<SUF>", "<filename>", "<eos>"} & set(UNMISTAKABLE)
    assert {"<|fim_pad|>", "<fim_prefix>", "<fim-middle>", "<EOT>", "<｜fim▁hole｜>"} <= set(UNMISTAKABLE)


LOCAL = Capabilities(frozenset({Shape.INFILL, Shape.RAW}), literal_text=True, remote=False)
SERVICE = Capabilities(frozenset({Shape.INFILL, Shape.RAW}))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_order_of_the_family_is_kept_where_only_the_tokens_are_known(family: Family) -> None:
    material = Material("a", "z", "python")
    local, service = (build(material, family, capabilities).prompt for capabilities in (LOCAL, SERVICE))
    expected = RawPrompt if family.name in SUFFIX_FIRST else InfillPrompt
    assert type(local) is expected
    assert type(service) is InfillPrompt


SUFFIX_FIRST = {"codellama-spm", "codestral", "codegeex4", "mellum-4b", "seed-coder"}


@pytest.mark.parametrize(
    ("family", "shapes", "prefers_template", "expected"),
    [
        ("qwen2.5-coder", "infill raw chat", False, InfillPrompt),
        ("qwen2.5-coder", "infill raw chat", True, RawPrompt),
        ("qwen2.5-coder", "raw chat", False, RawPrompt),
        ("qwen2.5-coder", "infill", True, InfillPrompt),
        ("qwen2.5-coder", "chat", False, ChatPrompt),
        ("yi-coder", "infill raw chat", True, InfillPrompt),  # it has no form for infilling of its own
        ("yi-coder", "raw chat", False, RawPrompt),  # known to continue text
        ("unknown", "infill raw chat", True, InfillPrompt),
        ("unknown", "raw chat", False, ChatPrompt),  # a chat sees the suffix, too
        ("unknown", "raw", False, RawPrompt),
    ],
)
def test_the_best_shape_is_chosen(family: str, shapes: str, prefers_template: bool, expected: type) -> None:
    capabilities = Capabilities(frozenset(map(Shape, shapes.split())), prefers_template=prefers_template)
    assert type(build(Material("a", "z", "python"), BY_NAME[family], capabilities).prompt) is expected


def test_without_any_shape_there_is_no_prompt() -> None:
    with pytest.raises(BackendError) as caught:
        build(Material("a", "z", "python"), BY_NAME["unknown"], Capabilities(frozenset()))
    assert caught.value.kind is ErrorKind.SETTINGS
