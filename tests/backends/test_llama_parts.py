"""What the local model's worker decides without llama.cpp, and what it says when that is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from backends._llama_process import command, environment
from backends.embedded import INSTALL
from backends.llama_worker.answer import AnswerText, ByteTable, Requirement
from backends.llama_worker.layout import Prompt, Role, Segment, fit
from backends.llama_worker.sampling import Sampler
from tests.llama_child import Child, needs_llama

TABLE = ByteTable(
    [(b"\n", 0), (b"\n    ", 1), (b"\n        ", 2), (b" x", 3), (b"    ", 4), (b"x", 5), (b"\n\n", 6), (b"", 7)]
)


class TestByteTable:
    def test_beginnings_and_continuations_are_allowed(self) -> None:
        assert sorted(TABLE.allowed(b"\n    ")) == [0, 1, 2]

    def test_all_that_begin_with_it(self) -> None:
        assert sorted(TABLE.allowed(b" ")) == [3, 4]

    def test_none(self) -> None:
        assert len(TABLE.allowed(b"\t")) == 0


class TestRequirement:
    def test_a_token_that_goes_beyond(self) -> None:
        requirement = Requirement(b"\n  ")
        assert [requirement.take(piece) for piece in (b"\n", b"   return", b" a")] == [b"", b" return", b" a"]


@needs_llama
class TestSampler:
    logits = np.array([0.0, 5.0, 4.9, -2.0, 4.8], dtype=np.float32)

    def draws(self, temperature: float, allowed: list[int] | None = None, **parameters: float) -> list[int]:
        from llama_cpp import llama_cpp

        sampler = Sampler(llama_cpp, temperature, parameters)
        ids = None if allowed is None else np.array(allowed, dtype=np.int32)
        drawn = [sampler.pick(self.logits, ids) for _ in range(100)]
        sampler.close()
        return drawn

    def test_greedy(self) -> None:
        assert set(self.draws(0)) == {1}

    def test_greedy_among_allowed(self) -> None:
        assert set(self.draws(0, [0, 3, 4])) == {4}

    def test_a_seed_repeats(self) -> None:
        assert self.draws(1.0, seed=3) == self.draws(1.0, seed=3) != self.draws(1.0, seed=4)

    def test_without_a_seed_it_differs(self) -> None:
        assert self.draws(1.0) != self.draws(1.0)

    def test_top_k_and_top_p_leave_out_the_unlikely(self) -> None:
        assert set(self.draws(1.0, seed=1, top_k=2)) == {1, 2}
        assert set(self.draws(1.0, seed=1, top_p=0.1)) == {1}
        assert set(self.draws(1.0, seed=1, top_p=0.5)) == {1, 2}
        assert set(self.draws(5.0, seed=1, top_k=0, top_p=1.0)) == {0, 1, 2, 3, 4}

    def test_a_draw_among_allowed(self) -> None:
        assert set(self.draws(5.0, [0, 3], seed=1, top_k=0, top_p=1.0)) == {0, 3}


class TestAnswerText:
    def test_a_stop_string_over_many_tokens(self) -> None:
        answer = AnswerText(["\n\ndef"])
        assert [answer.feed(piece) for piece in (b"a\n", b"\n", b"de")] == ["a\n", "\n", "de"]
        assert not answer.stopped
        answer.feed(b"f")
        assert answer.stopped

    def test_one_character(self) -> None:
        answer = AnswerText(["\n"])
        answer.feed(b"ab")
        assert not answer.stopped
        answer.feed(b"c\nd")
        assert answer.stopped

    def test_the_first_line_ends_after_text(self) -> None:
        answer = AnswerText([], first_line=True)
        for piece, stopped in ((b"\n", False), (b"  x", False), (b" ", False), (b"\n", True)):
            answer.feed(piece)
            assert answer.stopped is stopped


class TestFit:
    def test_what_fits_is_untouched(self) -> None:
        segments = [Segment((1,), Role.CONTEXT), Segment((2, 3), Role.PREFIX)]
        assert fit(segments, 3) == Prompt([1, 2, 3], 3, 3)

    def test_fixed_tokens_alone_are_too_many(self) -> None:
        assert fit([Segment((1, 2, 3)), Segment((4, 5), Role.PREFIX), Segment((6,))], 2).tokens == [3, 6]

    def test_where_prefix_and_suffix_end(self) -> None:
        middle = [Segment((2, 3), Role.PREFIX), Segment((8,)), Segment((4,), Role.SUFFIX), Segment((9,))]
        assert fit([Segment((1,)), *middle], 9) == Prompt([1, 2, 3, 8, 4, 9], 3, 5)
        before = [Segment((8,)), Segment((4,), Role.SUFFIX), Segment((7,)), Segment((2, 3), Role.PREFIX)]
        assert fit(before, 9) == Prompt([8, 4, 7, 2, 3], 5, 5)

    def test_several_plain_parts_lose_the_earliest_text(self) -> None:
        segments = [Segment((1, 2), Role.PREFIX), Segment((9,)), Segment((3, 4), Role.PREFIX)]
        assert fit(segments, 4) == Prompt([2, 9, 3, 4], 4, 4)


def test_waiting_threads_sleep_unless_the_user_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    assert environment()["OMP_WAIT_POLICY"] == "PASSIVE"
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert environment()["OMP_WAIT_POLICY"] == "ACTIVE"


def test_without_llama_cpp_the_message_says_what_to_install(tmp_path: Path) -> None:
    """-S: an interpreter that sees no installed package."""
    bare = [sys.executable, "-S", *command()[1:]]
    with Child(bare) as child:
        answer = child.load(tmp_path / "any.gguf")
    assert answer["error"] == "settings"
    assert answer["message"].startswith("llama-cpp-python cannot be used")
    assert INSTALL in answer["message"]
