"""`midfill bench infill` as a user runs it, on tasks of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lsp_server.bench import filters
from lsp_server.bench.table import number, table
from tests.llama_child import needs_llama
from tests.lsp_server.commandline import Done, midfill
from tests.services.ffm import Answer, FfmService

TINY = Path(__file__).with_name("infill_tasks.jsonl")
RIGHT, WRONG, SILENT = Answer(deltas=("    return a + b",)), Answer(deltas=("    while True: 1",)), Answer(deltas=("",))


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(script=[RIGHT, WRONG, SILENT]) as running:
        yield running


def bench(folder: Path, url: str, *more: str, data: Path = TINY) -> Done:
    (folder / "work.toml").write_text(
        f'[backends.work]\nkind = "ffm"\nurl = "{url}"\nmodel = "qwen2.5-coder-7b-32k"\nkey_env = "WORK_KEY"\n'
    )
    arguments = ["bench", "infill", "--config", "work.toml", "--data", str(data), *more]
    return midfill(*arguments, cwd=folder, env={"WORK_KEY": "test-key"})


def rows(done: Done) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)["rows"]}


def test_json(tmp_path: Path, service: FfmService) -> None:
    done = bench(tmp_path, service.url, "--json")
    row = rows(done)["whole engine"]
    assert (row["tasks"], row["passed"]) == (3, ["Own/0/L1"])
    assert row["pass_at_1"] == pytest.approx(1 / 3)
    assert (row["verdicts"], row["silences"]) == ({"passed": 1, "failed": 1}, {"empty": 1})
    assert row["median_ms"] > 0
    about = json.loads(done.stdout)
    assert (about["of"], about["backend"], about["model"]) == (3, "work", "qwen2.5-coder-7b-32k")
    assert about["left_out"] == {}


def test_table(tmp_path: Path, service: FfmService) -> None:
    done = bench(tmp_path, service.url, "--limit", "2")
    assert (done.returncode, done.stderr) == (0, "midfill: whole engine: 50.0%\n")
    head, heads, row = done.stdout.rstrip("\n").split("\n")
    assert head == "infill_tasks.jsonl: 2 of 3 tasks, backend work (qwen2.5-coder-7b-32k), greedy"
    assert heads.split("  ")[-1] == "median ms"
    assert row.split()[:7] == ["whole", "engine", "50.0%", "35.4%", "1", "1", "0"]


def test_silences_are_told_by_reason(tmp_path: Path, service: FfmService) -> None:
    assert "silent, whole engine: empty 1" in bench(tmp_path, service.url).stdout


def test_each_filter_has_a_row_and_the_service_is_asked_again_only_where_it_must_be(
    tmp_path: Path, service: FfmService
) -> None:
    found = rows(bench(tmp_path, service.url, "--each-filter", "--json"))
    assert found.keys() == {"whole engine", *(f"without {name}" for name in filters.each())}
    assert found["without trailing_space.trim"]["median_ms"] is None
    first = [name for name, before_cache in filters.each().items() if before_cache]
    assert len(service.log) == 3 * (1 + len(first))


def test_without_data_it_says_where_to_get_them(tmp_path: Path) -> None:
    done = midfill("bench", "infill", cwd=tmp_path, env={"HUMAN_EVAL_INFILLING": ""})
    assert (done.returncode, done.stdout) == (2, "")
    assert "openai/human-eval-infilling" in done.stderr


def test_a_backend_that_fails_is_not_asked_for_ever(tmp_path: Path) -> None:
    data = tmp_path / "nine.jsonl"
    data.write_text(TINY.read_text(encoding="utf-8") * 3, encoding="utf-8")
    with FfmService(script=[Answer(status=401)]) as service:
        done = bench(tmp_path, service.url, data=data)
        assert len(service.log) == 3
    assert (done.returncode, done.stdout) == (3, "")
    assert "key" in done.stderr


def test_a_backend_that_is_not_defined_is_wrong_usage(tmp_path: Path, service: FfmService) -> None:
    done = bench(tmp_path, service.url, "--backend", "home")
    assert (done.returncode, done.stdout) == (2, "")
    assert '"home"' in done.stderr


def test_filters_come_back() -> None:
    before = filters.each()
    with filters.without("echo.drop"):
        assert filters.each().keys() == before.keys() - {"echo.drop"}
    assert filters.each() == before
    assert (before["echo.drop"], before["blank.drop"]) == (True, False)


def test_columns_are_as_wide_as_they_must_be() -> None:
    assert table(("", "ms"), [("long name", "1.5"), ("x", "")]) == "            ms\nlong name  1.5\nx"
    assert (number(None), number(1.25), number(2.0, 0)) == ("-", "1.2", "2")


@needs_llama
@pytest.mark.model
def test_with_the_embedded_model(tmp_path: Path) -> None:
    done = midfill("bench", "infill", "--data", str(TINY), "--limit", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    named = {row["name"] for row in found["rows"]} | found["left_out"].keys()
    assert named == {"whole engine", "without suffix judging", "without token healing", "without both"}
    whole = found["rows"][0]
    assert whole["tasks"] == 2
    assert whole["median_ms"] > 0
    assert set(whole["passed"]) <= {"Own/0/L1", "Own/1/L1"}
