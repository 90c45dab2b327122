"""Makes a recording of typing from commits of a git repository: each commit one session, its files typed key by key.

    python benchmarks/record_typing.py [--repository FOLDER] [--sessions 10] [--seed 1] [--taken 0.05]
                                       [--out FILE.json]

Hunks are mostly typed from the top, some out of order. Now and then a wrong key is typed and taken back, or the rest
of a line comes at once, as when a suggestion is taken. `lsp_server/bench/recording.py` reads it.
`lsp_server/bench/typing_sessions.json` was made with `--taken 0 --seed 5 --sessions 8`: whoever replays it takes
suggestions that really come.
"""

from __future__ import annotations

import argparse
import difflib
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lsp_server.bench.recording import BACKSPACE

ROOT = Path(__file__).resolve().parent.parent
LARGEST_BYTES = 300_000  # of the whole recording
LARGEST_FILE, SMALL_FILE = 18_000, 11_000  # characters; where all files are small, prompts are
TYPED = (150, 1200)  # characters of a commit that are typed
FILES = 3  # that a commit may change
WRONG_KEY, TAKEN = 0.015, 0.05  # per character; per beginning of a word
LEAST_TAKEN = 6  # characters
PASTED = 400  # characters of a hunk that nobody types
PAUSE_MS, OTHER_FILE_MS = (700, 5000), (1500, 8000)
OUT_OF_ORDER = 0.4
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Hunk:
    """In `path`, `new` in place of [start, end) of the old text."""

    path: str
    start: int
    end: int
    new: str


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=True)
    return done.stdout.decode("utf-8")


def changes(repository: Path, commit: str) -> dict[str, tuple[str, str]]:
    """Python files that a commit changed, neither new nor deleted: text before and after."""
    names = git(repository, "diff-tree", "-r", "--name-only", "--diff-filter=M", "--no-commit-id", commit).split("\n")
    return {
        name: (git(repository, "show", f"{commit}^:{name}"), git(repository, "show", f"{commit}:{name}"))
        for name in names
        if name.endswith(".py") and not name.startswith("tests/")
    }


def hunks(path: str, old: str, new: str) -> list[Hunk]:
    before, after = (_LINE.findall(text) for text in (old, new))
    starts = [0]
    for line in before:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    found = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found.append(_trimmed(Hunk(path, starts[a], starts[b], "".join(after[c:d])), old))
    return found


def _trimmed(hunk: Hunk, old: str) -> Hunk:
    """Without what both sides have at their ends; new lines are typed from the end of the line above."""
    start, end, new = hunk.start, hunk.end, hunk.new
    while start < end and new and old[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and old[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    if start == end > 0 and new.endswith("\n") and old[start - 1] == "\n":
        start, end, new = start - 1, end - 1, "\n" + new[:-1]
    return Hunk(hunk.path, start, end, new)


def ordered(found: Sequence[Hunk], draw: random.Random) -> list[Hunk]:
    result = list(found)
    for index in range(len(result) - 1):
        if draw.random() < OUT_OF_ORDER:
            other = draw.randrange(index, len(result))
            result[index], result[other] = result[other], result[index]
    return result


def runs(found: Sequence[Hunk], draw: random.Random, taken: float = TAKEN) -> Iterator[list[Any]]:
    """As `recording.Run` has them: the place is that of the text as it is by then."""
    done: list[Hunk] = []
    for hunk in found:
        before = [other for other in done if other.path == hunk.path and other.start < hunk.start]
        shift = sum(len(other.new) - (other.end - other.start) for other in before)
        pauses = PAUSE_MS if not done or done[-1].path == hunk.path else OTHER_FILE_MS
        keys = list(typed(hunk.new, draw, taken))
        yield [draw.randint(*pauses), hunk.path, hunk.start + shift, hunk.end - hunk.start, keys]
        done.append(hunk)


def typed(text: str, draw: random.Random, taken: float) -> Iterator[str | list[str]]:
    if len(text) > PASTED:
        yield [text]
        return
    run, index = "", 0
    while index < len(text):
        rest = text[index:].partition("\n")[0]
        begins = text[index].isalpha() and not text[index - 1 : index].isalpha()
        if begins and len(rest) >= LEAST_TAKEN and draw.random() < taken:
            if run:
                yield run
            yield [rest]
            run, index = "", index + len(rest)
            continue
        if text[index].isalpha() and draw.random() < WRONG_KEY:
            run += draw.choice("asdfghjkl") + BACKSPACE
        run += text[index]
        index += 1
    if run:
        yield run


def session(files: Mapping[str, tuple[str, str]], draw: random.Random, taken: float) -> dict[str, Any] | None:
    """None if the commit is too large, too small, or changed what nobody would type."""
    if not 0 < len(files) <= FILES or not SMALL_FILE < max(len(old) for old, _ in files.values()) <= LARGEST_FILE:
        return None
    found = [hunk for path, (old, new) in files.items() for hunk in hunks(path, old, new)]
    added = sum(len(hunk.new) for hunk in found if len(hunk.new) <= PASTED)
    if not TYPED[0] <= added <= TYPED[1]:
        return None
    before = {path: old for path, (old, _) in files.items()}
    return {"files": before, "runs": list(runs(ordered(found, draw), draw, taken))}


def record(repository: Path, wanted: int, draw: random.Random, taken: float = TAKEN) -> list[dict[str, Any]]:
    commits = git(repository, "rev-list", "--no-merges", "--min-parents=1", "HEAD").split()
    draw.shuffle(commits)
    sessions: list[dict[str, Any]] = []
    for commit in commits:
        made = session(changes(repository, commit), draw, taken)
        # Every other session goes back and forth between files.
        if made is not None and (len(made["files"]) > 1 or len(sessions) % 2):
            sessions.append(made)
        if len(sessions) == wanted:
            break
    return sessions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=ROOT)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--taken", type=float, default=TAKEN, help="share of words with which a rest of a line comes")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "typing_data.json")
    options = parser.parse_args()
    sessions = record(options.repository, options.sessions, random.Random(options.seed), options.taken)
    about = "Commits of a repository, typed key by key. Made by benchmarks/record_typing.py."
    data = json.dumps({"about": about, "sessions": sessions}, indent=1, ensure_ascii=True) + "\n"
    if len(data) > LARGEST_BYTES:
        print(f"{len(data)} bytes are too many: ask for fewer sessions", file=sys.stderr)
        return 1
    options.out.write_text(data, encoding="utf-8")
    print(f"{options.out}: {len(sessions)} sessions, {len(data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
