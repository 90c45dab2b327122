"""A model's vocabulary: text to tokens, tokens to bytes, which tokens are no text. Knows no prompt and no context."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

from backends.llama_worker.answer import ByteTable
from backends.llama_worker.layout import Fim
from backends.llama_worker.library import Library

_CONTROL = 1 << 3  # LLAMA_TOKEN_ATTR_CONTROL
_LONGEST = 512  # bytes of a token at most
_SEPARATORS = (
    "<file_sep>",
    "<|file_sep|>",
    "<|file_separator|>",
    "<repo_name>",
    "<reponame>",
    "<|repo_name|>",
    "<filename>",
)


class Vocabulary:
    """Tokens of a model. Implements `layout.Tokenizer`."""

    def __init__(self, library: Library, model: Any) -> None:
        self._api = library.api
        self._vocab = self._api.llama_model_get_vocab(model)
        self.size = int(self._api.llama_vocab_n_tokens(self._vocab))
        names = ("pre", "suf", "mid", "pad", "rep", "sep")
        self.fim = Fim(**{name: self._id(f"llama_vocab_fim_{name}") for name in names})
        self.first = self._id("llama_vocab_bos") if self._api.llama_vocab_get_add_bos(self._vocab) else None

    def _id(self, function: str) -> int | None:
        token = int(getattr(self._api, function)(self._vocab))
        return token if token >= 0 else None

    @cached_property
    def _silent(self) -> frozenset[int]:
        """Tokens that are no text: control tokens, ends of generation and markers of infilling, files, repositories."""
        fim, api = self.fim, self._api
        marks = {fim.pre, fim.suf, fim.mid, fim.pad, fim.rep, fim.sep, *map(self.special, _SEPARATORS)}
        control = {t for t in range(self.size) if api.llama_vocab_get_attr(self._vocab, t) & _CONTROL}
        ends = {t for t in range(self.size) if api.llama_vocab_is_eog(self._vocab, t)}
        return frozenset({t for t in marks if t is not None} | control | ends)

    @cached_property
    def _pieces(self) -> list[bytes]:
        """Of every token: asked one by one while an answer is written they would cost as much as sampling."""
        buffer = ctypes.create_string_buffer(_LONGEST)
        convert, vocab, read = self._api.llama_token_to_piece, self._vocab, ctypes.string_at
        counts = (convert(vocab, token, buffer, _LONGEST, 0, False) for token in range(self.size))
        return [read(buffer, count) if count > 0 else b"" for count in counts]

    @cached_property
    def table(self) -> ByteTable:
        return ByteTable((piece, token) for token, piece in enumerate(self._pieces) if token not in self._silent)

    def read(self) -> None:
        """Look at every token now: a request should not wait for that."""
        assert self.table

    def ends(self, token: int) -> bool:
        """Whether the answer is over: end of generation, or a token that is no text."""
        return token in self._silent

    def piece(self, token: int) -> bytes:
        """The token's bytes, not always whole characters; empty for a control token."""
        return self._pieces[token]

    def extends(self, piece: bytes) -> bool:
        return self.table.extends(piece)

    def tokenize(self, text: str, *, joined: bool = False) -> list[int]:
        ids = self._tokenize(("\n" if joined and self._blank_first else "") + text, parse_special=False)
        return self._without(ids, b" \n") if joined and self._blank_first else ids

    @cached_property
    def _blank_first(self) -> bool:
        """Whether a blank that the text does not hold is put before it (SentencePiece)."""
        ids = self._tokenize("a", parse_special=False)
        return bool(ids) and self.piece(ids[0])[:1] == b" "

    def _without(self, ids: list[int], start: bytes) -> list[int]:
        """What follows `start`, which is a neighbour put there to have no blank; all if a token goes across its end."""
        seen = b""
        for index, token in enumerate(ids):
            if seen == start:
                return ids[index:]
            seen += self.piece(token)
        return [] if seen == start else ids

    def special(self, text: str) -> int | None:
        ids = self._tokenize(text, parse_special=True)
        return ids[0] if len(ids) == 1 else None

    def _tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")  # lone surrogates
        room = len(data) + 8
        while True:
            buffer = (self._api.llama_token * room)()
            count = self._api.llama_tokenize(self._vocab, data, len(data), buffer, room, False, parse_special)
            if count >= 0:
                return list(buffer[:count])
            room = -count
