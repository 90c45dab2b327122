"""What was written together with a line, by git's memory, for `midfill bench context`. Knows no cursor."""

from __future__ import annotations

import subprocess
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

_COMMITS = 1_000  # that are looked at
_WIDE = 20  # files; a commit of more says nothing about two of them
_TIME_S = 20.0


class History:
    """Of one checkout; empty where git knows nothing."""

    def __init__(self, root: Path, known: Collection[str]) -> None:
        """`known`: paths of files that count, relative to `root`."""
        self._root = root
        self._changed: dict[str, list[str]] = {}
        self.blame = lru_cache(maxsize=256)(self._blame)
        if (root / ".git").exists():
            log = _git(root, "log", f"-{_COMMITS}", "--no-merges", "--name-only", "--format=%x01%H")
            for commit in log.split("\x01")[1:]:
                name, _, paths = commit.partition("\n")
                changed = sorted({path for path in paths.split("\n") if path in known})
                if len(changed) <= _WIDE:
                    self._changed[name] = changed

    def together(self) -> Mapping[str, Counter[str]]:
        """How often a file changed in one commit with each other."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        for changed in self._changed.values():
            for path in changed:
                found[path].update(other for other in changed if other != path)
        return found

    def written_with(self, path: str, line: int) -> Mapping[str, str]:
        """The other files of the commit that a line is of, each with that commit."""
        blame = self.blame(path) if self._changed else ()
        commit = blame[line] if line < len(blame) else ""
        return {other: commit for other in self._changed.get(commit, ()) if other != path}

    def before(self, path: str, text: str, commit: str) -> str:
        """`text`, the file's own, without the lines that a commit wrote."""
        lines, blame = text.split("\n"), self.blame(path)
        if len(blame) < len(lines) - 1:
            return text
        return "\n".join(line for number, line in enumerate(lines) if blame[number : number + 1] != (commit,))

    def _blame(self, path: str) -> tuple[str, ...]:
        """The commit of each line."""
        found = _git(self._root, "blame", "--root", "-s", "-l", "--", path)
        return tuple(line.split(" ", 1)[0] for line in found.split("\n")[:-1])


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing if it says nothing in time."""
    command = ["git", "-c", "core.quotePath=false", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=True, timeout=_TIME_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace")
