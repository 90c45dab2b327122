"""Infilling tasks as HumanEval infilling has them: a program with a hole, and a test of the whole. Runs nothing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "HUMAN_EVAL_INFILLING"
FILES: Mapping[str, str] = {
    "single-line": "HumanEval-SingleLineInfilling.jsonl.gz",
    "multi-line": "HumanEval-MultiLineInfilling.jsonl.gz",
    "random-span": "HumanEval-RandomSpanInfilling.jsonl.gz",
}
WHERE = (
    f"The tasks are not part of midfill. They are the folder `data` of the repository openai/human-eval-infilling on"
    f" GitHub (MIT licence): name it, or one file of it, with --data or with the environment variable {VARIABLE}."
)
_FIELDS = ("task_id", "entry_point", "prompt", "suffix", "canonical_solution", "test")


class DataError(Exception):
    """There are no tasks, or the file does not hold any. The message is for the user."""


@dataclass(frozen=True, slots=True)
class Task:
    """`prompt` and `suffix` stand around the hole, which `canonical_solution` filled; `test` defines `check`."""

    task_id: str
    entry_point: str
    prompt: str
    suffix: str
    canonical_solution: str
    test: str

    @property
    def document(self) -> str:
        """What an editor shows; the cursor is at `len(prompt)`, on a line of its own where whole lines are missing."""
        whole_lines = self.prompt.endswith("\n") and self.canonical_solution.endswith("\n")
        return self.prompt + ("\n" if whole_lines else "") + self.suffix

    def program(self, completed: str) -> str:
        """`completed` is the document with the hole filled. The program ends with an exception unless it is right."""
        return f"{completed}\n{self.test}\ncheck({self.entry_point})\n"


def find(kind: str, named: str) -> Path:
    """The file with the tasks of a `kind` in `named`, a file or a folder. Raises DataError."""
    if not named:
        raise DataError(WHERE)
    path = Path(named).expanduser()
    if path.is_dir():
        path /= FILES[kind]
    if not path.is_file():
        raise DataError(f"{path}: there is no such file. {WHERE}")
    return path


def read(path: Path) -> list[Task]:
    """The tasks of a file of JSON lines, compressed if its name ends so. Raises DataError."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    tasks = [_task(path, number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not tasks:
        raise DataError(f"{path} holds no task")
    return tasks


def _task(path: Path, number: int, line: str) -> Task:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: not JSON ({error})") from error
    if not isinstance(record, dict):
        raise DataError(f"{path}, line {number}: not a JSON object")
    for name in _FIELDS:
        if not isinstance(record.get(name), str):
            raise DataError(f"{path}, line {number}: {name} is missing or no text")
    return Task(**{name: record[name] for name in _FIELDS})


def spread(tasks: Sequence[Task], limit: int) -> list[Task]:
    """`limit` tasks at even distances, as neighbours in the file are holes of one program. 0: all."""
    if not 0 < limit < len(tasks):
        return list(tasks)
    return [tasks[number * len(tasks) // limit] for number in range(limit)]
