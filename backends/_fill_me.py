"""FFM's `<FILL_ME>`: exactly one on the wire, whatever stands in the user's text. Knows nothing of HTTP."""

from __future__ import annotations

import re

MARKER = "<FILL_ME>"
STAND_INS = tuple(f"<FILL{character}ME>" for character in "-.:+~*=!?#")  # of the marker's length
# A window is cut at a literal marker only if this many code points of context remain; our own choice.
MIN_PREFIX = 1000
MIN_SUFFIX = 200

_HIGH, _SURROGATE = re.compile("[\ud800-\udbff]"), re.compile("[\ud800-\udfff]")


def place_marker(prefix: str, suffix: str) -> tuple[str, str]:
    """Return `inputs` with the marker at the cursor, and the stand-in used for literal markers ("" if none was).

    The service has no escape for the marker. So the window ends at a literal one where enough context remains, and
    otherwise a stand-in of the same length that occurs nowhere else takes its place.
    """
    prefix, suffix = _after_last(prefix), _before_first(suffix)
    stand_in = ""
    if MARKER in prefix or MARKER in suffix:
        stand_in = next((text for text in STAND_INS if text not in prefix and text not in suffix), STAND_INS[0])
        prefix, suffix = prefix.replace(MARKER, stand_in), suffix.replace(MARKER, stand_in)
    # With nothing behind the marker the service would not infill but only continue the prefix.
    return prefix + MARKER + (suffix or "\n"), stand_in


def _after_last(prefix: str) -> str:
    found = prefix.rfind(MARKER)
    line_end = prefix.find("\n", found)
    if found < 0 or line_end < 0 or len(prefix) - line_end - 1 < MIN_PREFIX:
        return prefix
    return prefix[line_end + 1 :]


def _before_first(suffix: str) -> str:
    found = suffix.find(MARKER)
    line_start = suffix.rfind("\n", 0, max(found, 0)) + 1
    return suffix[:line_start] if found >= 0 and line_start >= MIN_SUFFIX else suffix


class AnswerText:
    """Makes the user's text of an answer that comes in parts: stand-ins become markers, surrogates pairs or U+FFFD.

    Holds back the least tail that a coming part could turn into either.
    """

    def __init__(self, stand_in: str = "") -> None:
        self._stand_in = stand_in
        self._tail = ""

    def feed(self, text: str, *, last: bool = False) -> str:
        text, self._tail = self._tail + text, ""
        if self._stand_in:
            text = text.replace(self._stand_in, MARKER)
        if not last:
            held = self._held(text)
            text, self._tail = text[: len(text) - held], text[len(text) - held :]
        if _SURROGATE.search(text):
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _held(self, text: str) -> int:
        if text and _HIGH.match(text[-1]):
            return 1
        longest = min(len(text), len(self._stand_in) - 1)
        return next((n for n in range(longest, 0, -1) if text.endswith(self._stand_in[:n])), 0)
