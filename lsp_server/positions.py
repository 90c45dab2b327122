"""Columns in the client's units and indexes in code points, within one line. Pure functions.

Must not know documents, pygls or lsprotocol.
"""

from __future__ import annotations

import enum


class Encoding(enum.StrEnum):
    """What a client counts columns in; the values are those of LSP's `PositionEncodingKind`."""

    UTF8 = "utf-8"  # bytes
    UTF16 = "utf-16"  # 16-bit units, the default of the protocol
    UTF32 = "utf-32"  # code points


def content_length(line: str) -> int:
    """Length of `line` without its ending (`\\r\\n`, `\\n` or `\\r`), code points."""
    if line.endswith("\r\n"):
        return len(line) - 2
    return len(line) - 1 if line.endswith(("\n", "\r")) else len(line)


def index_at(line: str, column: int, encoding: Encoding) -> int:
    """The index, in code points, of `column` in client units.

    A column inside a character goes to its start, one past the content of the line to the end of the content (LSP:
    "defaults back to the line length"), a negative one to 0.
    """
    if column <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        index = column
    elif encoding is Encoding.UTF16:
        index = _index_utf16(line, column)
    else:
        index = _index_utf8(line, column)
    return min(index, content_length(line))


def column_at(line: str, index: int, encoding: Encoding) -> int:
    """The column, in client units, of the code point `index`, which is first clamped to the content of the line."""
    index = min(max(0, index), content_length(line))
    if encoding is Encoding.UTF32 or line.isascii():
        return index
    # surrogatepass: half a pair counts as its own unit instead of raising
    if encoding is Encoding.UTF16:
        return len(line[:index].encode("utf-16-le", "surrogatepass")) // 2
    return len(line[:index].encode("utf-8", "surrogatepass"))


# Both look at no more than `column` characters, only with what runs at the speed of C: a line may be the whole file.


def _index_utf16(line: str, column: int) -> int:
    units = line[:column].encode("utf-16-le", "surrogatepass")
    at = 2 * column
    if at >= len(units):  # no character before it takes two units, or the line is too short
        return column
    if units[at + 1] & 0xFC == 0xDC and units[at - 1] & 0xFC == 0xD8:  # the second unit of a character
        at -= 2
    return len(units[:at].decode("utf-16-le", "surrogatepass"))


def _index_utf8(line: str, column: int) -> int:
    units = line[:column].encode("utf-8", "surrogatepass")
    if column >= len(units):
        return column
    while units[column] & 0xC0 == 0x80:  # a continuation byte
        column -= 1
    return len(units[:column].decode("utf-8", "surrogatepass"))
