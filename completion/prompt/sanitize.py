"""Special tokens in the user's own text: made harmless for the prompt, mended in the answer. Must not know families."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

# ZERO WIDTH SPACE. After a token's first character it keeps the token readable to the model, and no tokenizer takes it
# for special. It is hardly ever found in source code.
BREAK = "\u200b"


class Sanitizer:
    """Works on one set of tokens. With none, it changes nothing."""

    def __init__(self, tokens: Iterable[str]) -> None:
        longest_first = sorted(tokens, key=len, reverse=True)
        self._tokens = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._begins = tuple({token[:2] for token in longest_first})
        self.broken: Mapping[str, str] = MappingProxyType({broken(token): token for token in longest_first})

    def clean(self, text: str) -> str:
        # Looking for two characters is many times quicker than the pattern, and they hardly ever stand in code.
        if self._tokens is None:
            return text
        for begin in self._begins:
            if begin in text:
                return self._tokens.sub(lambda match: broken(match[0]), text)
        return text


sanitizer_of = lru_cache(maxsize=64)(Sanitizer)  # of a tuple of tokens; takes longer to make than to use


def broken(token: str) -> str:
    """The harmless form of `token`."""
    return f"{token[0]}{BREAK}{token[1:]}"
