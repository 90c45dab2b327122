"""What the local model's worker decides without llama.cpp, and what it says when that is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from backends._llama_process import command, environment
from backends.embedded import INSTALL
from backends.llama_worker.layout import Role, Segment, fit
from backends.llama_worker.sampling import AnswerText, ByteTable, Requirement, Sampler
from tests.llama_child import Child

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


class TestSampler:
    logits = np.array([0.0, 5.0, 4.9, -2.0, 4.8], dtype=np.float32)

    def test_greedy(self) -> None:
        assert Sampler(0, {}).pick(self.logits) == 1

    def test_greedy_among_allowed(self) -> None:
        assert Sampler(0, {}).pick(self.logits, np.array([0, 3, 4])) == 4

    def test_a_seed_repeats(self) -> None:
        first, second = (Sampler(1.0, {"seed": 3}) for _ in range(2))
        drawn = [first.pick(self.logits) for _ in range(50)]
        assert drawn == [second.pick(self.logits) for _ in range(50)]
        assert len(set(drawn)) > 1

    def test_top_k_and_top_p_leave_out_the_unlikely(self) -> None:
        for parameters, expected in (({"top_k": 2}, {1, 2}), ({"top_p": 0.1}, {1}), ({"top_p": 0.5}, {1, 2})):
            sampler = Sampler(1.0, {"seed": 1, **parameters})
            assert {sampler.pick(self.logits) for _ in range(200)} == expected

    def test_a_draw_among_allowed(self) -> None:
        sampler = Sampler(5.0, {"seed": 1, "top_k": 0, "top_p": 1.0})
        assert {sampler.pick(self.logits, np.array([0, 3])) for _ in range(200)} == {0, 3}


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


class TestFit:
    def test_what_fits_is_untouched(self) -> None:
        segments = [Segment((1,), Role.CONTEXT), Segment((2, 3), Role.PREFIX)]
        assert fit(segments, 3) == [1, 2, 3]

    def test_fixed_tokens_alone_are_too_many(self) -> None:
        assert fit([Segment((1, 2, 3)), Segment((4, 5), Role.PREFIX), Segment((6,))], 2) == [3, 6]

    def test_several_plain_parts_lose_the_earliest_text(self) -> None:
        segments = [Segment((1, 2), Role.PREFIX), Segment((9,)), Segment((3, 4), Role.PREFIX)]
        assert fit(segments, 4) == [2, 9, 3, 4]


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
