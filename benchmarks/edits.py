"""What an edit, a snapshot and a slice cost in a file of 1,000 and of 100,000 lines.

`python benchmarks/edits.py [--json]`. Both sizes are measured in turn, so that a busy machine slows both: look at
the ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lsp_server.documents import Documents, Edit
from lsp_server.positions import Encoding

SIZES = (1_000, 100_000)  # lines
ROUNDS = 1_000
URI = "file:///work/edited.py"
LINE = "    value = compute(alpha, beta)  # line {}\n"
PASTE = "".join(f"pasted = {n}\n" for n in range(50))

Step = Callable[[], object]


class Bench:
    """One open document and the steps whose cost is measured; every step changes the version."""

    def __init__(self, lines: int) -> None:
        self.documents = Documents(Encoding.UTF16)
        text = "".join(LINE.format(n) for n in range(lines))
        started = time.perf_counter()
        self.documents.open(URI, "python", 0, text)
        self.open_ms = (time.perf_counter() - started) * 1e3
        self.count = lines
        self.random = random.Random(7)
        self.version = 0

    def edit(self, edit: Edit) -> Step:
        self.version += 1
        version, edits = self.version, [edit]
        return lambda: self.documents.change(URI, version, edits)

    def typing(self) -> Iterator[Step]:
        for n in range(ROUNDS):
            column = 4 + n % 80
            yield self.edit(Edit("x", (self.count // 2 + n // 80, column, self.count // 2 + n // 80, column)))

    def newline(self) -> Iterator[Step]:
        """Each newline is taken back, unmeasured, so that the file keeps its size."""
        at = self.count // 2
        for _ in range(ROUNDS):
            yield self.edit(Edit("\n", (at, 8, at, 8)))
            self.edit(Edit("", (at, 8, at + 1, 0)))()

    def random_place(self) -> Iterator[Step]:
        for _ in range(ROUNDS):
            line, column = self.random.randrange(self.count), self.random.randrange(30)
            text, removed = self.random.choice([("x", 0), ("word", 2), ("\n", 0), ("", 3)])
            yield self.edit(Edit(text, (line, column, line, column + removed)))

    def paste(self) -> Iterator[Step]:
        for _ in range(ROUNDS):
            line = self.random.randrange(self.count)
            yield self.edit(Edit(PASTE, (line, 0, line, 0)))
            self.edit(Edit("", (line, 0, line + 50, 0)))()

    def cut(self) -> Iterator[Step]:
        for _ in range(ROUNDS):
            line = self.random.randrange(self.count)
            self.edit(Edit(PASTE, (line, 0, line, 0)))()
            yield self.edit(Edit("", (line, 0, line + 50, 0)))

    def snapshot(self) -> Iterator[Step]:
        """Right after an edit."""
        for step in self.typing():
            step()
            yield lambda: self.documents.snapshot(URI)

    def window(self) -> Iterator[Step]:
        """What a request reads, right after an edit: cursor to offset, 8,000 characters, and back to a position."""

        def read() -> None:
            document = self.documents.get(URI)
            assert document is not None
            text = document.lines
            offset = text.offset_at(self.count // 2, 6, Encoding.UTF16)
            text.slice(offset - 6_000, offset + 2_000)
            text.position_at(offset, Encoding.UTF16)

        for step in self.typing():
            step()
            yield read


STEPS = ("typing", "newline", "random_place", "paste", "cut", "snapshot", "window")


def median_us(name: str, benches: list[Bench]) -> list[float]:
    """Median cost in microseconds, one for each bench, taken in turn."""
    times: list[list[int]] = [[] for _ in benches]
    for steps in zip(*(getattr(bench, name)() for bench in benches), strict=True):
        for step, spent in zip(steps, times, strict=True):
            started = time.perf_counter_ns()
            step()
            spent.append(time.perf_counter_ns() - started)
    return [statistics.median(spent) / 1e3 for spent in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    benches = [Bench(lines) for lines in SIZES]
    rows = {name: median_us(name, benches) for name in STEPS}
    result = {
        name: {"median_us": dict(zip(map(str, SIZES), row, strict=True)), "ratio": row[1] / row[0]}
        for name, row in rows.items()
    }
    if as_json:
        print(
            json.dumps({"steps": result, "open_ms": {str(bench.count): bench.open_ms for bench in benches}}, indent=2)
        )
        return
    print(f"{'median, µs':<14}" + "".join(f"{f'{lines:,} lines':>16}" for lines in SIZES) + f"{'ratio':>8}")
    for name, row in rows.items():
        print(
            f"{name.replace('_', ' '):<14}" + "".join(f"{value:>16.1f}" for value in row) + f"{row[1] / row[0]:>8.2f}"
        )
    print(f"{'open, ms':<14}" + "".join(f"{bench.open_ms:>16.1f}" for bench in benches))


if __name__ == "__main__":
    main()
