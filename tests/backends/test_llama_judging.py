"""Several answers to one prompt: the one that what follows the hole speaks for, and all of them side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_gguf
from tests.llama_child import Child, needs_llama, raw

pytestmark = needs_llama

# After `=` comes a little more often `a` than `b`, and a line end after both; `z` is known only after `b`.
FOLLOWS: tiny_gguf.Follows = {
    "=": {"a": 1.0, "b": 0.99},
    "a": "Ċ",
    "b": {"Ċ": 1.0, "z": 0.8},
    "Ċ": "q",
    "q": "q",
    "z": "z",
    "1": dict.fromkeys("abcdef", 1.0),
    # Behind `d` comes `y` a little more often than behind `c`; `d` itself is as good as `c` after `-`, poor after `+`.
    "-": {"c": 1.0, "d": 0.99},
    "+": {"c": 1.0, "d": 0.9},
    "c": {"Ċ": 1.0, "y": 0.985},
    "d": {"Ċ": 1.0, "y": 0.999},
    "y": "Ċ",
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.scripted(tmp_path_factory.mktemp("models") / "two.gguf", FOLLOWS, fim=False)


@pytest.fixture
def child(model: Path) -> Iterator[Child]:
    with Child() as running:
        running.load(model, 512)
        yield running


def judged(child: Child, text: str, suffix: str, *, judge: bool = True, **fields: Any) -> dict[str, Any]:
    prompt = raw(text, suffix=suffix)
    return child.ask(prompt, **{"first_line": True, "parameters": {"judge": judge, "seed": 1}, **fields})


class TestJudging:
    def test_the_answer_that_what_follows_speaks_for(self, child: Child) -> None:
        assert judged(child, "x=", "zzz")["text"] == "b\n"
        assert judged(child, "x=", "zzz", judge=False)["text"] == "a\n"

    def test_what_follows_may_speak_for_the_likeliest(self, child: Child) -> None:
        assert judged(child, "x=", "\nqq")["text"] == "a\n"

    def test_an_unlikely_answer_is_not_taken_for_a_little(self, child: Child) -> None:
        # With the seed that `judged` sets `d` is drawn both times.
        assert judged(child, "x+", "y")["text"] == "c\n"
        assert judged(child, "x-", "y")["text"] == "d\n"

    def test_it_is_repeatable(self, child: Child) -> None:
        assert len({judged(child, "x=1", "zz")["text"] for _ in range(4)}) == 1

    def test_without_anything_to_judge_by(self, child: Child) -> None:
        assert judged(child, "x=", "")["text"] == "a\n"
        assert judged(child, "x=", "\n \n")["text"] == "a\n"

    def test_several_lines_are_not_judged(self, child: Child) -> None:
        assert judged(child, "x=", "zzz", first_line=False, max_tokens=3)["text"] == "a\nq"

    def test_the_end_of_the_prompt_is_not_part_of_the_answer(self, child: Child) -> None:
        assert judged(child, "x=\n", "qqq")["text"].startswith("q")

    def test_an_answer_that_is_accepted_was_evaluated(self, child: Child) -> None:
        judged(child, "xyz=", "zzz")
        answer = child.ask(raw("xyz=b"))
        assert answer["prompt_tokens"] - answer["reused_tokens"] == 1

    def test_nothing_is_left_behind(self, child: Child) -> None:
        """The other answers' sequences are gone: a second file is still there after many requests."""
        child.ask(raw("file" * 20))
        for number in range(40):
            judged(child, f"x{number}=", "zzz")
            child.ask(raw("file" * 20))
        answer = child.ask(raw("file" * 20))
        assert answer["prompt_tokens"] - answer["reused_tokens"] == 1

    def test_on_a_slow_machine_it_is_left_out(self, child: Child) -> None:
        """Nothing was evaluated yet, so that nothing is known of this machine."""
        answer = child.ask(raw("x=", suffix="zzz"), first_line=True)
        assert answer["text"] == "a\n"

    def test_a_first_line_is_enough(self, child: Child) -> None:
        answer = child.ask(raw("x="), first_line=True)
        assert (answer["text"], answer["done"], answer["generated_tokens"]) == ("a\n", "stop", 2)

    def test_white_space_before_it_is_no_line(self, child: Child) -> None:
        assert child.ask(raw("a"), 5, first_line=True)["text"] == "\nqqqq"


class TestCandidates:
    def texts(self, child: Child, prompt: dict[str, Any], count: int, tokens: int) -> tuple[dict[int, str], Any]:
        child.start(prompt, tokens, candidates=count, parameters={"seed": 1})
        texts: dict[int, str] = {}
        while "done" not in (reply := child.read()):
            if "text" in reply:
                texts[reply["index"]] = texts.get(reply["index"], "") + reply["text"]
        return texts, reply

    def test_each_has_its_number(self, child: Child) -> None:
        texts, last = self.texts(child, raw("x1"), 4, 1)
        assert sorted(texts) == [0, 1, 2, 3]
        assert len(set(texts.values())) > 1
        assert last["generated_tokens"] == 4

    def test_the_first_is_the_same_as_alone(self, child: Child) -> None:
        texts, _ = self.texts(child, raw("x="), 3, 6)
        assert texts[0] == child.ask(raw("x="), 6)["text"]

    def test_each_goes_on_from_its_own_text(self, child: Child) -> None:
        texts, _ = self.texts(child, raw("x="), 6, 6)
        assert set(texts.values()) == {"a\nqqqq", "b\nqqqq"}

    def test_one_prompt_is_evaluated(self, child: Child) -> None:
        _, last = self.texts(child, raw("some longer text x="), 6, 4)
        assert last["prompt_tokens"] == len("some longer text x=")
        again = child.ask(raw("some longer text x="))
        assert again["prompt_tokens"] - again["reused_tokens"] == 1

    def test_where_cells_do_not_suffice_the_last_ones_end(self, tmp_path: Path) -> None:
        with Child() as child:
            child.load(tiny_gguf.random(tmp_path / "random.gguf"), 256)
            _, last = self.texts(child, raw("".join(chr(97 + i * i % 26) for i in range(100))), 6, 128)
        assert last["done"] == "length"
        assert 128 < last["generated_tokens"] < 6 * 128


class TestWarming:
    def test_the_prompt_is_evaluated_and_nothing_written(self, child: Child) -> None:
        answer = child.ask(raw("some text x="), 0)
        assert (answer["text"], answer["generated_tokens"], answer["done"]) == ("", 0, "length")
        then = child.ask(raw("some text x=1"))
        assert then["prompt_tokens"] - then["reused_tokens"] <= 2
