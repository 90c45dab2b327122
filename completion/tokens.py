"""How many tokens a text will take, guessed without the model's tokenizer. Must not know any model."""

from __future__ import annotations

from math import ceil

# Byte-level BPE vocabularies of code models give 3 to 4 ASCII characters of source code a token. 3 keeps the guess on
# the high side; should it still be too low, the backend says so and the engine asks again with a smaller window.
CHARACTERS_PER_TOKEN = 3

# Each further UTF-8 byte of a character adds this: 1.0 tokens for a Greek letter, 1.6 for a Han character, 2.3 for an
# emoji. Small vocabularies made of English and code are about that bad at them (SmolLM2: 0.9, 1.3 and up to 4).
_TOKENS_PER_EXTRA_BYTE = 0.65

# What stands around another file in a prompt: special tokens, or a comment that names it.
_MARKS = 8


def estimate(text: str) -> int:
    """Tokens `text` will take at most, as a rule."""
    tokens = len(text) / CHARACTERS_PER_TOKEN
    if not text.isascii():
        tokens += (len(text.encode("utf-8", "surrogatepass")) - len(text)) * _TOKENS_PER_EXTRA_BYTE
    return ceil(tokens)


def estimate_file(path: str, text: str) -> int:
    """Tokens another file takes in a prompt, with its path and the marks around it."""
    return estimate(path) + estimate(text) + _MARKS


def fit_tail(text: str, tokens: int) -> int:
    """The smallest index from which on `text` takes at most `tokens`."""
    low, high = max(0, len(text) - max(0, tokens) * CHARACTERS_PER_TOKEN), len(text)
    if text.isascii():
        return low
    while low < high:
        middle = (low + high) // 2
        if estimate(text[middle:]) <= tokens:
            high = middle
        else:
            low = middle + 1
    return low


def fit_head(text: str, tokens: int) -> int:
    """The largest index up to which `text` takes at most `tokens`."""
    low, high = 0, min(len(text), max(0, tokens) * CHARACTERS_PER_TOKEN)
    if text.isascii():
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    return low
