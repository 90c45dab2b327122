"""What the local model's process keeps: which tokens each way of moving about in files has evaluated again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_gguf
from tests.llama_child import Child, infill, needs_llama, raw

pytestmark = needs_llama

ANSWER = 8  # tokens


def lines(name: str, count: int) -> str:
    """Text in which one token is one character."""
    return "".join(f"{name}{number:03}=x;" for number in range(count))


FIRST, SECOND = lines("one", 40), lines("two", 40)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.random(tmp_path_factory.mktemp("models") / "random.gguf")


@pytest.fixture
def child(model: Path) -> Iterator[Child]:
    with Child() as running:
        running.load(model, 1024)
        yield running


def evaluated(answer: dict[str, Any]) -> int:
    return int(answer["prompt_tokens"]) - int(answer["reused_tokens"])


def ask(child: Child, text: str) -> dict[str, Any]:
    return child.ask(raw(text), ANSWER)


class TestEvaluated:
    def test_typing_forward(self, child: Child) -> None:
        ask(child, FIRST)
        assert [evaluated(ask(child, FIRST + "abc"[:count])) for count in (1, 2, 3)] == [1, 1, 1]

    def test_deleting_back(self, child: Child) -> None:
        ask(child, FIRST)
        assert [evaluated(ask(child, FIRST[:-count])) for count in (1, 2, 3)] == [1, 1, 1]

    def test_to_another_line_and_back(self, child: Child) -> None:
        ask(child, FIRST)
        assert evaluated(ask(child, FIRST[:200] + "new")) == 3
        assert evaluated(ask(child, FIRST + "a")) == 1

    def test_to_another_file_and_back(self, child: Child) -> None:
        ask(child, FIRST)
        assert evaluated(ask(child, SECOND)) == len(SECOND)
        assert evaluated(ask(child, FIRST + "a")) == 1
        assert evaluated(ask(child, SECOND + "a")) == 1

    def test_accepting_a_suggestion(self, tmp_path: Path) -> None:
        with Child() as child:
            child.load(tiny_gguf.scripted(tmp_path / "abc.gguf", dict(zip(";abcdefgh", "abcdefghi", strict=True))))
            assert ask(child, FIRST)["text"] == "abcdefgh"
            assert evaluated(ask(child, FIRST + "abcdefgh")) == 1
            assert evaluated(ask(child, FIRST + "abcdefghi")) == 1

    def test_a_common_beginning_of_two_files_is_shared(self, child: Child) -> None:
        ask(child, FIRST + SECOND)
        assert evaluated(ask(child, FIRST + SECOND[::-1])) == len(SECOND)

    def test_typing_in_one_place_keeps_no_second_copy(self, child: Child) -> None:
        """Else the other file would soon be pushed out."""
        ask(child, SECOND)
        for count in range(60):
            ask(child, FIRST + lines("new", 20)[:count])
        assert evaluated(ask(child, SECOND)) == 1

    def test_one_token_is_always_evaluated(self, child: Child) -> None:
        assert [evaluated(ask(child, FIRST)) for _ in range(2)] == [len(FIRST), 1]


class TestCells:
    def test_the_oldest_gives_way(self, child: Child) -> None:
        texts = [lines(f"n{number:02}", 110) for number in range(4)]  # 880 tokens each, room for two
        for text in texts:
            assert evaluated(ask(child, text)) > 800
        assert evaluated(ask(child, texts[3])) == 1
        assert evaluated(ask(child, texts[2])) == 1
        assert evaluated(ask(child, texts[0])) > 800

    def test_more_documents_than_sequences(self, child: Child) -> None:
        texts = [f"{chr(65 + number)}{lines('doc', 4)}" for number in range(20)]
        for text in texts:
            ask(child, text)
        assert evaluated(ask(child, texts[19])) == 1
        assert evaluated(ask(child, texts[0])) == len(texts[0])


class TestAnswers:
    def test_they_do_not_depend_on_what_is_held(self, model: Path, child: Child) -> None:
        prompts = [FIRST, FIRST[:200] + "new", SECOND, FIRST + "a", FIRST[:90], SECOND[:100] + FIRST, FIRST, SECOND]
        kept = [ask(child, prompt)["text"] for prompt in prompts]
        new = {}
        for prompt in dict.fromkeys(prompts):
            with Child() as other:
                other.load(model, 1024)
                new[prompt] = ask(other, prompt)["text"]
        assert kept == [new[prompt] for prompt in prompts]
        assert len(set(kept)) >= 5

    def test_an_infill_prompt_shares_its_prefix(self, child: Child) -> None:
        first = child.ask(infill(FIRST, "s" * 40), ANSWER)
        again = child.ask(infill(FIRST, "s" * 40), ANSWER)
        assert evaluated(again) == 1
        assert again["text"] == first["text"]
