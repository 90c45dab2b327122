"""Infilling tasks: how they are read, chosen and made into programs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from lsp_server.bench import tasks

TINY = Path(__file__).with_name("infill_tasks.jsonl")


def test_reads_json_lines_plain_and_compressed(tmp_path: Path) -> None:
    compressed = tmp_path / "tasks.jsonl.gz"
    compressed.write_bytes(gzip.compress(TINY.read_bytes()))
    assert [task.entry_point for task in tasks.read(TINY)] == ["add", "double", "first"]
    assert tasks.read(compressed) == tasks.read(TINY)


def test_a_folder_stands_for_the_file_of_the_kind_of_task(tmp_path: Path) -> None:
    (tmp_path / tasks.FILES["multi-line"]).write_bytes(gzip.compress(TINY.read_bytes()))
    assert tasks.find("multi-line", str(tmp_path)) == tmp_path / tasks.FILES["multi-line"]
    assert tasks.find("multi-line", str(TINY)) == TINY
    with pytest.raises(tasks.DataError, match=r"HumanEval-SingleLineInfilling.*there is no such file"):
        tasks.find("single-line", str(tmp_path))


def test_says_where_the_tasks_are_to_be_had() -> None:
    with pytest.raises(tasks.DataError, match=r"openai/human-eval-infilling.*--data.*HUMAN_EVAL_INFILLING"):
        tasks.find("single-line", "")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "holds no task"),
        (b"\n\n", "holds no task"),
        (b"{", "line 1: not JSON"),
        (b"[]", "line 1: not a JSON object"),
        (b'\n{"task_id": "x", "entry_point": 3}', "line 2: entry_point is missing or no text"),
        (b"\xff", "cannot be read"),
    ],
)
def test_says_what_is_wrong_with_a_file(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)
    with pytest.raises(tasks.DataError, match=complaint):
        tasks.read(path)


def test_a_file_cut_off_or_not_compressed_is_said_to_be_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "tasks.jsonl.gz"
    for content in (gzip.compress(TINY.read_bytes())[:-9], TINY.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(tasks.DataError, match="cannot be read"):
            tasks.read(path)


def test_a_limit_takes_tasks_from_all_of_the_file() -> None:
    every = tasks.read(TINY) * 4
    assert [every.index(task) for task in tasks.spread(every[:3], 2)] == [0, 1]
    assert tasks.spread(every, 4) == [every[0], every[3], every[6], every[9]]
    assert tasks.spread(every, 0) == tasks.spread(every, 99) == every


def test_the_cursor_is_on_a_line_of_its_own_where_lines_are_missing() -> None:
    task = tasks.read(TINY)[1]
    assert task.document == task.prompt + "\n" + task.suffix
    record = json.loads(TINY.read_text(encoding="utf-8").split("\n")[0])
    within = tasks.Task(**{**record, "prompt": "def add(a, b):\n    return a ", "canonical_solution": "+ b"})
    assert within.document == within.prompt + within.suffix
