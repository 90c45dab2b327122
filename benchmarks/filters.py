"""Time the filters take for one answer: 200 lines of it in a file of 10,000 lines, all filters and each alone.

    python benchmarks/filters.py [--lines 200] [--rounds 200] [--json]

The answer is cut where it is too long, as any is; what was cut is looked at all the same. The kinds of answers: code,
code that repeats itself, code with another indentation than the file's, and one line. Times are medians of rounds in
turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from completion import postprocess
from completion.context.window import Windows
from completion.postprocess.base import Edit
from completion.prompt.families import UNMISTAKABLE
from completion.types import DocumentSnapshot, PlainText, Reason

GOAL_MS = 0.5
FILE_LINES = 10_000
TOKENS = 2048  # of the window, as by default
BLOCK = """def function_{n}(items, limit={n}):
    found = []
    for item in items:
        if item.value > limit:
            found.append(item.name or "{n}")
    return found[:limit]


"""


def code(lines: int, first: int = 0) -> str:
    blocks = [BLOCK.format(n=first + n) for n in range(lines // BLOCK.count("\n") + 1)]
    return "\n".join("".join(blocks).split("\n")[:lines])


def answers(lines: int) -> dict[str, str]:
    short = "\n".join(f"    a{n} = {n}" for n in range(lines))  # as many lines as the limit of characters lets pass
    return {
        "code": code(lines, 90_000),
        "short lines": short.lstrip(),
        "repeats itself": "x = 1\n" + "    found.append(item)\n" * lines,
        "tabs": code(lines, 90_000).replace("    ", "\t"),
        "one line": "found.append(item.name)",
    }


def around() -> postprocess.Around:
    text = code(FILE_LINES)
    middle = text.index("    found = []", len(text) // 2) + 4
    text = text[:middle] + "\n    " + text[middle:]
    cursor = middle + 5
    document = DocumentSnapshot("untitled:benchmark", "python", 1, PlainText(text), "benchmark.py")
    window = Windows().cut(document, (cursor, cursor), "", tokens=TOKENS, suffix_tokens=TOKENS // 5)
    return postprocess.Around(window, UNMISTAKABLE, "python", automatic=True, deleted="print(items)")


def median_ms(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def all_filters(answer: str, place: postprocess.Around) -> None:
    postprocess.finish(postprocess.begin(answer, place).text, place)


def each_filter(answer: str, place: postprocess.Around, rounds: int) -> dict[str, float]:
    """Each filter on what the ones before it leave, in ms. A name may come twice."""
    times: dict[str, float] = {}
    text = answer
    for apply in (*postprocess.BEGINNING, *postprocess.PIPELINE):
        name = postprocess.name_of(apply)
        took = median_ms(lambda apply=apply, text=text: apply(text, place), rounds)  # type: ignore[misc]
        times[name] = times.get(name, 0.0) + took
        result = apply(text, place)
        if isinstance(result, Reason):
            break
        text = result.text if isinstance(result, Edit) else result
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    place = around()
    kinds = answers(arguments.lines)
    totals: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(arguments.rounds):
        for name, answer in kinds.items():
            totals[name].append(median_ms(lambda answer=answer: all_filters(answer, place), 1))  # type: ignore[misc]
    medians = {name: statistics.median(times) for name, times in totals.items()}
    slowest = max(kinds, key=lambda name: medians[name])
    single = each_filter(kinds[slowest], place, arguments.rounds)
    if arguments.json:
        sys.stdout.write(json.dumps({"median_ms": medians, "goal_ms": GOAL_MS, "filters_ms": {slowest: single}}) + "\n")
        return 0
    for name, took in medians.items():
        sys.stdout.write(f"{name:16} {took:7.3f} ms  {'met' if took < GOAL_MS else 'missed'}\n")
    sys.stdout.write(f"\neach filter, {slowest}:\n")
    for name, took in sorted(single.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{name:16} {took:7.3f} ms\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
