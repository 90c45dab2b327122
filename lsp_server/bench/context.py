"""How much of what the next line needs from other files stands in what is chosen of them, within 1,000 tokens.

Lines are held out of real code. Counted are identifiers of such a line that other files of the repository define and
that neither its own file defines nor the window around the cursor holds. No model is asked. Compared are the engine's
choice, the same without each of its sources, and what is common.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from backends.base import File
from completion.settings import ContextSettings
from completion.tokens import estimate_file
from lsp_server import cli, fds
from lsp_server.bench import context_ways as ways
from lsp_server.bench.context_code import WORD
from lsp_server.bench.context_data import DataError, repositories
from lsp_server.bench.context_places import TOKENS, Place, Sampler
from lsp_server.bench.context_rows import Result, Row, row
from lsp_server.bench.figures import Figure, shown
from lsp_server.bench.table import number, table
from lsp_server.commands._terminal import Terminal, note

HELP = "share of what the next line needs from other files that the context chosen for it holds"
GOAL = 1.3  # ours to windows
OURS, COMMON = "ours", "60-line Jaccard windows"
Way = Callable[[Place], Sequence[File]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        default=[],
        help="repositories, or folders with some; midfill's source and Python's standard library if not given",
    )
    parser.add_argument("--limit", type=int, default=200, metavar="N", help="N places, of all repositories alike; 200")
    parser.add_argument("--seed", type=int, default=1, help="other places and other open documents; 1 if not given")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with all places")
    parser.set_defaults(config=None)


def command(arguments: argparse.Namespace) -> int:
    try:
        read = repositories(arguments.data)
    except DataError as error:
        return cli.fail(str(error))
    places = [
        place
        for index, each in enumerate(read)
        for place in Sampler(each, arguments.seed).places(
            max(1, arguments.limit // len(read) + (index < arguments.limit % len(read)))
        )
    ]
    if not places:
        return cli.fail("no line there needs what another file defines: is it code, of several files?")
    with fds.take_stdout() as out:
        bench = _Bench(places)
        bench.run()
        about = {
            "places": len(places),
            "identifiers": sum(len(place.wanted) for place in places),
            "seed": arguments.seed,
        }
        Terminal(out).result(json.dumps(about | bench.as_json()) if arguments.json else _shown(about, bench))
    return cli.DONE


def every_way() -> Mapping[str, Way]:
    sources = ContextSettings().sources
    return {
        "no other file": ways.nothing,
        "head of the last file": ways.head,
        COMMON: ways.windows,
        OURS: ways.Ours(sources),
        **{f"without {name}": ways.Ours([each for each in sources if each != name]) for name in sources},
        "all open files, whole": ways.everything,
    }


class _Bench:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._found: dict[str, list[frozenset[str]]] = {}
        self._results: dict[str, list[Result]] = {}

    def run(self) -> None:
        for name, way in every_way().items():
            found, results = [], []
            for place in self._places:
                files = way(place)
                held = place.wanted.intersection(*[WORD.findall("\n".join(file.text for file in files))])
                found.append(held)
                tokens = sum(estimate_file(file.path, file.text) for file in files)
                results.append(
                    Result(f"{place.repository.name}/{place.file.path}", len(place.wanted), len(held), tokens)
                )
            self._found[name], self._results[name] = found, results
            note(f"{name}: {row(name, results, results).share:.1%}")

    def groups(self) -> Iterator[tuple[str, list[Row]]]:
        """All places; then each repository's and each language's, where there are several."""
        yield "all", self._rows(range(len(self._places)))
        for of in (_repository, _language):
            names = sorted({of(place) for place in self._places})
            for name in names if len(names) > 1 else ():
                yield name, self._rows([index for index, place in enumerate(self._places) if of(place) == name])

    def _rows(self, chosen: Sequence[int]) -> list[Row]:
        common = [self._results[COMMON][index] for index in chosen]
        return [row(name, [results[index] for index in chosen], common) for name, results in self._results.items()]

    def goal(self) -> Figure:
        ours = next(each for each in self._rows(range(len(self._places))) if each.name == OURS)
        note = "" if ours.ratio_error is None else f"± {ours.ratio_error:.2f}"
        return Figure(f"{OURS} to {COMMON}", ours.ratio, "times", GOAL, at_least=True, note=note)

    def as_json(self) -> dict[str, Any]:
        return {
            "groups": {name: [each.as_json() for each in rows] for name, rows in self.groups()},
            "figures": [self.goal().as_json()],
            "held_out": [
                {
                    "repository": place.repository.name,
                    "path": place.file.path,
                    "line": place.line + 1,
                    "wanted": sorted(place.wanted),
                    "found": {name: sorted(found[index]) for name, found in self._found.items() if found[index]},
                }
                for index, place in enumerate(self._places)
            ],
        }


def _repository(place: Place) -> str:
    return place.repository.name


def _language(place: Place) -> str:
    return place.file.language_id


def _shown(about: Mapping[str, Any], bench: _Bench) -> str:
    heads = ("", "", "found", "±", "to windows", "±", "tokens")
    rows = [
        (
            group if index == 0 else "",
            each.name,
            f"{each.share:.1%}",
            f"{each.error:.1%}",
            number(each.ratio, 2),
            number(each.ratio_error, 2),
            number(each.tokens, 0),
        )
        for group, found in bench.groups()
        for index, each in enumerate(found)
    ]
    head = (
        f"{about['identifiers']} identifiers that {about['places']} held-out lines need from other files,"
        f" {TOKENS:,} tokens shown"
    )
    return "\n".join((head, table(heads, rows, left=(0, 1)), "", shown([bench.goal()])))
