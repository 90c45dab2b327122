"""Special tokens of any model family end the answer: a wrongly guessed family lets them through.

So do those a model wrote wrongly, or of which the end was cut. Tokens that the user's own text holds are code and stay.
"""

from __future__ import annotations

import re

from completion.languages import MARKUP
from completion.postprocess.base import Around

# Forms that no family has, but models write.
_MISSPELT = re.compile(
    r"<\s?[/|｜]{0,2}\s?(?:"
    r"fim[_▁ -]?(?:prefix|suffix|middle|pad|begin|hole|end)|endoftext|end_of_text|end▁of▁sentence|im_(?:start|end)"
    r"|eot_id|file_sep(?:arator)?|repo_?name|(?:start|end)_of_turn"
    r")\s?[|｜]?>",
    re.I,
)
# Tokens that are code in texts made of tags.
_TAGS = re.compile(r"<(?:MID|SUF|PRE|EOS|eos)>|</(?:s|code)?>?\s*\Z")
# Less of a token's beginning or end may be code: `a <| f`. Characters.
_BEGINNING, _END = 4, 6


def cut(text: str, around: Around) -> str:
    if "<" not in text and ">" not in text:
        return text
    window = around.window
    for token in around.specials if "<" in text else ():
        at = text.find(token)
        if at >= 0 and token not in window.prefix and token not in window.suffix:
            text = text[:at]
    for pattern in (_MISSPELT,) if around.language_id in MARKUP else (_MISSPELT, _TAGS):
        found = pattern.search(text)
        if found and not _known(found[0], around):
            text = text[: found.start()]
    return _without_parts(text, around)


def _known(token: str, around: Around) -> bool:
    """Whether the user works with it: it stands in the text, or may close what was opened."""
    window, bare = around.window, token.strip()
    opening = bare.replace("/", "").rstrip(">")
    return any(each in text for each in (bare, opening) for text in (window.prefix, window.suffix))


def _without_parts(text: str, around: Around) -> str:
    """Without the end of a token that the prompt began, and without the beginning of one whose end was cut."""
    close = text.find(">", 0, 40)
    if close >= _END - 1:
        begun = text[: close + 1]
        if any(token.endswith(begun) for token in around.specials):
            text = text[close + 1 :]
    at = text.rfind("<", max(0, len(text) - 40))
    begun = text[at:]
    if at >= 0 and len(begun) >= _BEGINNING and any(token.startswith(begun) for token in around.specials):
        text = text[:at]
    return text
