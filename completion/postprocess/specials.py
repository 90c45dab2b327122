"""Special tokens of any model family end the answer: a wrongly guessed family lets them through.

Tokens that the user's own text holds are code and stay.
"""

from __future__ import annotations

from completion.postprocess.base import Around


def cut(text: str, around: Around) -> str:
    for token in around.specials:
        at = text.find(token)
        if at >= 0 and token not in around.window.prefix and token not in around.window.suffix:
            text = text[:at]
    return text
