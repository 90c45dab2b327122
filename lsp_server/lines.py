"""The text of an open document as a tree of lines, edited at a cost that does not grow with the file.

Must not know documents. Lines end at `\\n`, `\\r\\n` and `\\r` only, as LSP says; `str.splitlines` breaks at form feed,
U+2028 and others too and would put every later edit on the wrong line.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import attrgetter
from typing import TypeVar

from lsp_server.positions import Encoding, column_at, index_at

# Lines in a leaf and nodes in a node, at most. An edit copies one leaf and the nodes above it, so its cost is
# FANOUT * log(lines) / log(FANOUT): nearly flat from 32 to 128 (benchmarks/edits.py).
FANOUT = 64

_HALF_PAIR = re.compile("[\ud800-\udfff]")
_T = TypeVar("_T")
_COUNT = attrgetter("count")
_LENGTH = attrgetter("length")


class _Leaf:
    """Consecutive lines, each with its ending. Never changed; only `starts` is filled in when first asked for."""

    __slots__ = ("_starts", "count", "items", "length")

    def __init__(self, items: tuple[str, ...]) -> None:
        self.items = items
        self.count = len(items)  # lines
        self.length = sum(map(len, items))  # code points
        self._starts: list[int] | None = None

    @property
    def starts(self) -> list[int]:
        """Offset of each line in the leaf, then the length of the leaf."""
        if self._starts is None:
            self._starts = list(accumulate(map(len, self.items), initial=0))
        return self._starts

    def slice(self, start: int, end: int) -> str:
        """Requires 0 <= start < end <= length."""
        if start == 0 and end == self.length:
            return "".join(self.items)
        starts = self.starts
        first = bisect_right(starts, start) - 1
        last = bisect_left(starts, end, first)
        base = starts[first]
        return "".join(self.items[first:last])[start - base : end - base]

    def with_line(self, number: int, line: str) -> _Leaf:
        """The same but for one line."""
        return _Leaf((*self.items[:number], line, *self.items[number + 1 :]))

    def spliced(self, first: int, last: int, lines: tuple[str, ...], fanout: int) -> tuple[_Leaf, ...]:
        """Leaves for this one with `lines` in place of the lines first to last, both included; none if empty."""
        return tuple(map(_Leaf, _grouped((*self.items[:first], *lines, *self.items[last + 1 :]), fanout)))


class _Branch:
    """Consecutive nodes, all of one height. Never changed, as `_Leaf`."""

    __slots__ = ("_starts", "count", "items", "length", "line_starts")

    def __init__(self, items: tuple[_Node, ...]) -> None:
        self.items = items
        self.line_starts = list(accumulate(map(_COUNT, items), initial=0))  # first line of each, then `count`
        self.count = self.line_starts[-1]
        self.length: int = sum(map(_LENGTH, items))
        self._starts: list[int] | None = None

    @property
    def starts(self) -> list[int]:
        if self._starts is None:
            self._starts = list(accumulate(map(_LENGTH, self.items), initial=0))
        return self._starts

    def slice(self, start: int, end: int) -> str:
        starts = self.starts
        first = bisect_right(starts, start) - 1
        last = bisect_left(starts, end, first) - 1
        if first == last:  # most of them: it goes on further down
            return self.items[first].slice(start - starts[first], end - starts[first])
        parts = [self.items[first].slice(start - starts[first], self.items[first].length)]
        parts += [node.slice(0, node.length) for node in self.items[first + 1 : last] if node.length]
        parts.append(self.items[last].slice(0, end - starts[last]))
        return "".join(parts)

    def with_line(self, number: int, line: str) -> _Branch:
        """The same but for one line: what counts lines is shared."""
        at = bisect_right(self.line_starts, number) - 1
        old = self.items[at]
        node = old.with_line(number - self.line_starts[at], line)
        new = _Branch.__new__(_Branch)
        new.items = (*self.items[:at], node, *self.items[at + 1 :])
        new.line_starts, new.count = self.line_starts, self.count
        new.length = self.length + node.length - old.length
        new._starts = None
        return new

    def spliced(self, first: int, last: int, lines: tuple[str, ...], fanout: int) -> tuple[_Branch, ...]:
        low = bisect_right(self.line_starts, first) - 1
        high = bisect_right(self.line_starts, last, low) - 1
        node, end = self.items[low], self.items[high]
        begun, ended = self.line_starts[low], self.line_starts[high]
        new: tuple[_Node, ...]
        if low == high:
            new = node.spliced(first - begun, last - begun, lines, fanout)
        else:
            new = (
                *node.spliced(first - begun, node.count - 1, lines, fanout),
                *end.spliced(0, last - ended, (), fanout),
            )
        high += 1
        if any(len(part.items) <= fanout // 4 for part in new):  # too small to stay alone
            if high < len(self.items):
                new += (self.items[high],)
                high += 1
            elif low:
                low -= 1
                new = (self.items[low], *new)
            new = _regrouped(new, fanout)
        return tuple(map(_Branch, _grouped(self.items[:low] + new + self.items[high:], fanout)))


_Node = _Leaf | _Branch


class Lines:
    """Immutable text as lines; an edit gives a new one that shares every untouched leaf. A `completion.types.Text`.

    Positions are (line, column), 0-based, columns in units of the `Encoding` given; offsets are code points. Both are
    clamped: a column past the content of a line to its end before the line ending, a line past the last to the end of
    the text. Half a surrogate pair becomes U+FFFD, which is as wide in every encoding: the text can always be encoded.
    """

    __slots__ = ("_fanout", "_root")

    def __init__(self, text: str = "", *, fanout: int = FANOUT) -> None:
        """`fanout`: at least 2; other than the default only in tests."""
        self._fanout = fanout
        self._root = _tree(tuple(map(_Leaf, _grouped(_split(_encodable(text), final=True), fanout))), fanout)

    def __len__(self) -> int:
        return self._root.length

    @property
    def line_count(self) -> int:
        """At least 1: the text after the last line ending is a line, even when empty."""
        return self._root.count

    def line(self, number: int) -> str:
        """Line `number` with its ending. Raises IndexError when there is none."""
        if not 0 <= number < self.line_count:
            raise IndexError(f"line {number} of {self.line_count}")
        node = self._root
        while isinstance(node, _Branch):
            at = bisect_right(node.line_starts, number) - 1
            number -= node.line_starts[at]
            node = node.items[at]
        return node.items[number]

    def leaves(self) -> list[tuple[str, ...]]:
        """All lines in groups, which stay the same objects as long as none of their lines is edited."""
        nodes: list[_Node] = [self._root]
        while isinstance(nodes[0], _Branch):
            nodes = [item for node in nodes if isinstance(node, _Branch) for item in node.items]
        return [node.items for node in nodes if isinstance(node, _Leaf)]

    def slice(self, start: int, end: int) -> str:
        start, end = max(0, start), min(end, len(self))
        return self._root.slice(start, end) if start < end else ""

    def offset_at(self, line: int, column: int, encoding: Encoding) -> int:
        """Offset of a position of the client, clamped."""
        number, _, offset = self._locate(line, column, encoding)
        node = self._root
        while isinstance(node, _Branch):
            at = bisect_right(node.line_starts, number) - 1
            number -= node.line_starts[at]
            offset += node.starts[at]
            node = node.items[at]
        return node.starts[number] + offset

    def position_at(self, offset: int, encoding: Encoding) -> tuple[int, int]:
        """(line, column) of an offset. An offset between `\\r` and `\\n` is the end of the line's content."""
        offset = min(max(0, offset), len(self))
        number, node = 0, self._root
        while isinstance(node, _Branch):
            at = bisect_right(node.starts, offset, 0, len(node.items)) - 1
            number += node.line_starts[at]
            offset -= node.starts[at]
            node = node.items[at]
        at = bisect_right(node.starts, offset, 0, node.count) - 1
        return number + at, column_at(node.items[at], offset - node.starts[at], encoding)

    def replaced(self, start: tuple[int, int], end: tuple[int, int], text: str, encoding: Encoding) -> Lines:
        """This text with `text` in place of [start, end). Ends in the wrong order are swapped."""
        if end < start:
            start, end = end, start
        text = _encodable(text)
        first, line, head = self._locate(*start, encoding)
        last, last_line, tail = (first, line, head) if end == start else self._locate(*end, encoding)
        prefix, suffix = line[:head], last_line[tail:]
        if not head and first and (text or suffix).startswith("\n") and self.line(first - 1).endswith("\r"):
            first -= 1  # the two become one \r\n
            prefix = self.line(first)
        new = Lines.__new__(Lines)
        new._fanout = self._fanout
        if first == last and "\n" not in text and "\r" not in text:  # most keys
            new._root = self._root.with_line(first, prefix + text + suffix)
        else:
            lines = _split(prefix + text + suffix, final=last == self.line_count - 1)
            new._root = _tree(self._root.spliced(first, last, lines, self._fanout), self._fanout)
        return new

    def _locate(self, line: int, column: int, encoding: Encoding) -> tuple[int, str, int]:
        """The position clamped: an existing line, its text, and an index in its content in code points."""
        if line < 0:
            return 0, self.line(0), 0
        if line >= self.line_count:
            text = self.line(self.line_count - 1)
            return self.line_count - 1, text, len(text)
        text = self.line(line)
        return line, text, index_at(text, column, encoding)


def _split(text: str, *, final: bool) -> tuple[str, ...]:
    """Lines with their endings. `final`: the text ends the document, so what follows its last ending is a line, too."""
    lines = tuple(io.StringIO(text, newline=""))  # this mode knows just the three endings and leaves them as they are
    if final and (not lines or lines[-1].endswith(("\n", "\r"))):
        lines += ("",)
    return lines


def _grouped(items: tuple[_T, ...], fanout: int) -> list[tuple[_T, ...]]:
    """Groups of at most `fanout`, as even as can be so that none is about to be split again."""
    if len(items) <= fanout:
        return [items] if items else []
    groups = -(-len(items) // fanout)
    step = -(-len(items) // groups)
    return [items[at : at + step] for at in range(0, len(items), step)]


def _regrouped(nodes: tuple[_Node, ...], fanout: int) -> tuple[_Node, ...]:
    """Neighbours of one height with their items spread evenly."""
    if isinstance(nodes[0], _Leaf):
        lines = tuple(line for node in nodes if isinstance(node, _Leaf) for line in node.items)
        return tuple(map(_Leaf, _grouped(lines, fanout)))
    below = tuple(item for node in nodes if isinstance(node, _Branch) for item in node.items)
    return tuple(map(_Branch, _grouped(below, fanout)))


def _tree(nodes: tuple[_Node, ...], fanout: int) -> _Node:
    """One root over nodes of one height, no higher than needed."""
    while len(nodes) > 1:
        nodes = tuple(map(_Branch, _grouped(nodes, fanout)))
    root = nodes[0]
    while isinstance(root, _Branch) and len(root.items) == 1:
        root = root.items[0]
    return root


def _encodable(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _HALF_PAIR.sub("\ufffd", text)
    return text
