"""Words of services in messages: neither source text nor secrets, however they are quoted or cut."""

from __future__ import annotations

import json

import pytest

from backends._safe import safe_text

SOURCE = 'def add_secretly(a, b):\n    password = "hunter2-topsecret"\n    # 这里说明一件谁也不该知道的小事情啊\n    '
KEY = "canary-5f4dcc3b5aa765d61d8327deb882cf99"


@pytest.mark.parametrize(
    "echo",
    [
        SOURCE,
        repr(SOURCE),
        str([{"loc": ("body", "prompt"), "input": SOURCE}]),
        json.dumps({"prompt": SOURCE}),
        json.dumps({"prompt": SOURCE}, ensure_ascii=False),
        json.dumps(json.dumps({"prompt": SOURCE})),
        SOURCE[4:55] + "...",
        SOURCE.replace("\n", " "),
    ],
)
def test_source_is_not_repeated_however_it_is_quoted(echo: str) -> None:
    shown = safe_text(f"Wrong input: {echo}", source=SOURCE)
    assert shown.startswith("Wrong input: ")
    assert "…" in shown
    assert not any(part in shown for part in ("secret", "hunter", "password", "谁", "8c01"))


def test_words_that_are_in_the_source_by_chance_stay() -> None:
    said = "The model is not found: check the name of it"
    assert safe_text(said, source="# the model is here\nname = 'not found'\n") == said
    assert safe_text(said, source="") == said


def test_longer_parts_are_left_out_once_each() -> None:
    assert safe_text("a 0123456789abcdefXY b 0123456789abcdef c", source="x = 0123456789abcdefXY") == "a … b … c"


@pytest.mark.parametrize("part", [KEY, KEY[:20], KEY[-9:], KEY[3:12]])
def test_parts_of_secrets_are_left_out(part: str) -> None:
    assert safe_text(f"Bearer {part}... is wrong", secrets=(KEY,)) == "Bearer ***... is wrong"


def test_few_characters_of_a_secret_say_nothing() -> None:
    assert safe_text("sk-***cf99 is wrong", secrets=(KEY,)) == "sk-***cf99 is wrong"


def test_of_a_long_text_only_the_beginning_is_looked_at() -> None:
    assert safe_text("x" * 100_000 + KEY, secrets=(KEY,)) == "x" * 199 + "…"
