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


class TestMovedSuffix:
    """In prefix-suffix-middle order every key would have all of the suffix evaluated again."""

    SUFFIX = lines("end", 12)

    def type(self, child: Child, typed: str, suffix: str = SUFFIX) -> dict[str, Any]:
        return child.ask(infill(FIRST + typed, suffix), ANSWER)

    def test_typing_evaluates_the_new_text_and_the_last_token(self, child: Child) -> None:
        self.type(child, "")
        assert [evaluated(self.type(child, "abcdef"[:count])) for count in range(1, 7)] == [2] * 6

    def test_deleting_evaluates_the_last_token(self, child: Child) -> None:
        self.type(child, "abcdef")
        assert [evaluated(self.type(child, "abcdef"[:-count])) for count in range(1, 6)] == [1] * 5

    def test_replacing(self, child: Child) -> None:
        self.type(child, "abc")
        assert evaluated(self.type(child, "xyzw")) == 4 + 1

    def test_a_suffix_that_has_changed_at_its_end_is_kept_up_to_there(self, child: Child) -> None:
        self.type(child, "")
        assert evaluated(self.type(child, "a", self.SUFFIX[:-5] + "vwxyz")) == 1 + 5 + 1

    def test_another_suffix_is_evaluated(self, child: Child) -> None:
        self.type(child, "")
        assert evaluated(self.type(child, "a", SECOND[:60])) == 1 + 1 + 60 + 1

    def test_what_is_too_old_is_evaluated_again(self, child: Child) -> None:
        self.type(child, "")
        counts = [evaluated(self.type(child, lines("t", 12)[:count])) for count in range(1, 80)]
        assert counts.count(2) >= 76
        assert counts.count(max(counts)) == 2
        assert max(counts) > len(self.SUFFIX)

    def test_a_pause_evaluates_it_again(self, child: Child) -> None:
        """A request without an answer is made while nobody waits."""
        self.type(child, "")
        self.type(child, "a")
        prompt = infill(FIRST + "a", self.SUFFIX)
        assert [evaluated(child.ask(prompt, 0)) for _ in range(2)] == [len(self.SUFFIX) + 2, 1]

    def test_a_jump_evaluates_it_again(self, child: Child) -> None:
        self.type(child, "")
        assert evaluated(self.type(child, "j" * 60)) > len(self.SUFFIX) + 60

    def test_the_positions_are_right(self, child: Child, model: Path) -> None:
        """A suffix that knows all but the last key: the answers of this model are the same as when all is evaluated."""
        kept = []
        for count in range(7):
            kept.append(self.type(child, "abcdef"[:count])["text"])
        with Child() as other:
            other.load(model, 1024)
            fresh = []
            for count in range(7):
                fresh.append(self.type(other, "abcdef"[:count], self.SUFFIX)["text"])
                other.ask(raw("#" * 900), 1)  # pushes everything out
                other.ask(raw("%" * 900), 1)
        assert sum(a == b for a, b in zip(kept, fresh, strict=True)) >= 5

    def test_a_cancelled_request_leaves_it_right(self, child: Child) -> None:
        first = self.type(child, "abc")
        child.start(infill(FIRST + "abcd", self.SUFFIX), 512)
        child.send("cancel")
        child.last()
        again = self.type(child, "abc")
        assert again["text"] == first["text"]

    def test_it_is_shared_as_it_stands(self, child: Child) -> None:
        """Several answers, and another prompt with the same beginning, behind a text that was moved."""
        self.type(child, "")
        moved = self.type(child, "ab")["text"]
        child.start(infill(FIRST + "ab", self.SUFFIX), ANSWER, candidates=3)
        texts = dict.fromkeys(range(3), "")
        while "done" not in (reply := child.read()):
            if "text" in reply:
                texts[reply["index"]] += reply["text"]
        assert texts[0] == moved
        assert evaluated(self.type(child, "ab", self.SUFFIX + "x" * 40)) == 40 + 1

    def test_two_places_with_one_suffix_do_not_move_each_others(self, child: Child) -> None:
        first = self.type(child, "")
        child.ask(infill(FIRST, self.SUFFIX), ANSWER, candidates=3)
        self.type(child, "a")
        assert self.type(child, "")["text"] == first["text"]
