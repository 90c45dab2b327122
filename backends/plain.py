"""Text of others made fit for a terminal, a log and a message box. Imports nothing of ours: everybody may use it."""

from __future__ import annotations

import re

# C0 without tab and newline, delete, C1; what turns the direction of writing: such text reads as it does not run;
# halves of surrogate pairs: such text cannot be encoded.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """`text` with U+FFFD in place of each control character: no escape sequence, no bell. Tab and newline stay."""
    return _CONTROLS.sub("\ufffd", text)
