"""No control character of anybody else's gets to a terminal or a message box."""

from __future__ import annotations

import pytest

from backends._safe import safe_text
from backends.base import BackendError, ErrorKind
from backends.plain import plain

CONTROLS = [
    chr(code) for code in (*range(32), 127, *range(128, 160), 0x202E, 0x2066, 0xD800) if chr(code) not in "\t\n"
]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"{ord(control):x}")
def test_controls(control: str) -> None:
    assert plain(f"a{control}[31mb") == "a\ufffd[31mb"
    assert BackendError(ErrorKind.PROTOCOL, f"a{control}b").message == "a\ufffdb"
    assert str(BackendError(ErrorKind.PROTOCOL, f"a{control}b")) == "a\ufffdb"
    assert control not in safe_text(f"a{control}[31mb")


@pytest.mark.parametrize("text", ["", "a\tb\nc", "é漢😀\u00a0\u2028\ufeff", "مرحبا"])
def test_everything_else_stays(text: str) -> None:
    assert plain(text) == text
