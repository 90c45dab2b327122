"""Prompts that end inside a token: what is taken off, and that the answer is what the model writes without the cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from backends.embedded import embedded_model
from backends.llama_worker.answer import ByteTable
from backends.llama_worker.healing import roll_back
from tests import tiny_gguf
from tests.llama_child import Child, infill, needs_llama, raw

CODE = 'import os\n\n\ndef load(path):\n    with open(path) as file:\n        return file.read()\n\n\nclass Store:\n    def __init__(self, name):\n        self.name = name\n\n    def get(self, key, default=None):\n        if key in self.items:\n            return self.items[key]\n'  # fmt: skip  # noqa: E501


class Words:
    """A vocabulary of these words, numbered as they stand."""

    def __init__(self, *words: bytes) -> None:
        self.words = words
        self._table = ByteTable((word, number) for number, word in enumerate(words))

    def piece(self, token: int) -> bytes:
        return self.words[token]

    def extends(self, piece: bytes) -> bool:
        return self._table.extends(piece)

    def roll_back(self, *words: bytes) -> tuple[list[bytes], bytes]:
        kept, removed = roll_back([self.words.index(word) for word in words], self)
        return [self.words[token] for token in kept], removed


class TestRollBack:
    words = Words(b"", b"im", b"po", b"import", b"self", b".", b".x", b"\n", b" ", b"   ", b"\n\n", b"):", b"1")

    def test_a_word_that_may_go_on(self) -> None:
        assert self.words.roll_back(b"\n", b"im", b"po") == ([b"\n"], b"impo")

    def test_a_token_that_may_go_on(self) -> None:
        assert self.words.roll_back(b"self", b".") == ([b"self"], b".")

    def test_a_token_that_cannot_go_on_stays(self) -> None:
        assert self.words.roll_back(b"self", b"1") == ([b"self", b"1"], b"")
        assert self.words.roll_back(b"\n", b"import") == ([b"\n", b"import"], b"")

    def test_white_space_goes_as_a_whole(self) -> None:
        assert self.words.roll_back(b"):", b"\n", b"   ", b" ") == ([b"):"], b"\n    ")

    def test_a_token_without_text_stays(self) -> None:
        assert self.words.roll_back(b"", b"im") == ([b""], b"im")

    def test_all_of_it(self) -> None:
        assert self.words.roll_back(b"im") == ([], b"im")
        assert self.words.roll_back() == ([], b"")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """SentencePiece; after `=` the model writes `▁import x`."""
    path = tmp_path_factory.mktemp("models") / "spm.gguf"
    follows = {"=": "▁import", "▁import": "▁x", "▁<MID>": "im", "im": "po", "po": "rt", "▁": "import", "<s>": "▁import"}
    with Child() as child:
        child.load(tiny_gguf.sentence_piece(path, follows), 512)
        yield child


def spelt(answer: dict[str, Any]) -> list[str]:
    return [tiny_gguf.sentence_pieces()[token] for token in answer["tokens"]]


@needs_llama
class TestSentencePiece:
    def test_a_word_is_finished(self, pieces: Child) -> None:
        answer = pieces.ask(raw("x= impo"))
        assert spelt(answer) == ["<s>", "▁x", "="]
        assert answer["text"] == "rt x"

    def test_a_blank_is_left_to_the_next_word(self, pieces: Child) -> None:
        answer = pieces.ask(raw("x= "))
        assert (spelt(answer), answer["text"]) == (["<s>", "▁x", "="], "import x")

    def test_the_very_first_word(self, pieces: Child) -> None:
        answer = pieces.ask(raw("impo"))
        assert (spelt(answer), answer["text"]) == (["<s>"], "rt x")

    def test_no_blank_comes_before_the_suffix(self, pieces: Child) -> None:
        answer = pieces.ask(infill("x=", "self"))
        assert spelt(answer) == ["<s>", "▁<PRE>", "▁x", "=", "▁<SUF>", "self", "▁<MID>"]
        assert answer["text"] == "import"

    def test_a_suffix_of_any_beginning(self, pieces: Child) -> None:
        for suffix in ("\n", "\n\nself", " x", "é"):
            ids = spelt(pieces.ask(infill("x=", suffix)))
            assert "".join(ids[5:-1]).replace("<0x0A>", "\n").replace("<0xC3><0xA9>", "é").replace("▁", " ") == suffix

    def test_the_prefix_of_an_infill_prompt_is_healed(self, pieces: Child) -> None:
        answer = pieces.ask(infill("x=im", "self"))
        assert spelt(answer)[:4] == ["<s>", "▁<PRE>", "▁x", "="]
        assert answer["text"] == "port"


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Child]:
    """Byte-level; after `f:` the model writes a line."""
    follows = {":": "Ċ", "Ċ": "Ġreturn", "Ġreturn": "x", "x": "y", "<|fim_middle|>": "q", "q": "x"}
    with Child() as running:
        running.load(tiny_gguf.scripted(tmp_path_factory.mktemp("models") / "healing.gguf", follows), 512)
        yield running


@needs_llama
class TestByteLevel:
    @pytest.mark.parametrize("end", ["", "\n", "\n ", "\n r", "\n ret", "\n retur"])
    def test_a_cut_anywhere_in_a_token(self, child: Child, end: str) -> None:
        answer = child.ask(raw("f:" + end))
        assert end + answer["text"] == "\n returnxy"

    def test_what_cannot_go_on_is_left(self, child: Child) -> None:
        assert child.ask(raw("f:\n retu"))["tokens"] == list(b"f:\n")
        assert child.ask(raw("f:x"))["tokens"] == list(b"f:x")

    def test_the_prefix_before_a_raw_suffix(self, child: Child) -> None:
        pre, suf, mid = ((token, True) for token in tiny_gguf.FIM[:3])
        answer = child.ask(raw(pre, "ab re", suf, "cd ", mid))
        ids = tiny_gguf.ids()
        assert answer["tokens"] == [ids[pre[0]], *b"ab", ids[suf[0]], *b"cd", ids["Ġ"], ids[mid[0]]]

    def test_switched_off(self, child: Child) -> None:
        answer = child.ask(raw("f:\n "), parameters={"heal": False})
        ids = tiny_gguf.ids()
        assert answer["tokens"] == [*b"f:", ids["Ċ"], ids["Ġ"]]


@needs_llama
@pytest.mark.model
@pytest.mark.skipif(embedded_model() is None, reason="the embedded model is not installed")
def test_a_cut_changes_nothing_that_the_model_writes() -> None:
    """At every place in what the model itself wrote: the cut's answer goes on as the model did."""
    path = embedded_model()
    assert path is not None
    with Child() as child:
        child.load(path, 1024)
        whole = child.ask(raw(CODE + "    def "), 48)["text"]
        cuts = range(1, len(whole) - 20, 3)
        wrong = [
            cut
            for cut in cuts
            if not whole.startswith(
                (whole[:cut] + child.ask(raw(CODE + "    def " + whole[:cut]), 8)["text"])[: cut + 8]
            )
        ]
    assert len(whole) > 60
    assert len(wrong) <= len(cuts) // 20, wrong
