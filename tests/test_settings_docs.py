from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lsp_server.settings import load
from tests.settings_table import PAGE, TABLES, filled


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_tables_are_current() -> None:
    assert page() == filled(page()), "run: python -m tests.settings_table"


def test_a_changed_table_is_noticed() -> None:
    changed = page().replace("`debounce_ms`", "`debounce`")
    assert changed != filled(changed) == page()


def test_a_missing_table_is_noticed() -> None:
    with pytest.raises(ValueError, match="0 places"):
        filled(page().replace("<!-- context, made", "<!-- made"))


def test_every_example_is_taken_without_a_problem(tmp_path: Path) -> None:
    examples = re.findall(r"^```toml\n(.*?)^```", page(), flags=re.DOTALL | re.MULTILINE)
    assert len(examples) >= 3
    for number, example in enumerate(examples):
        assert tomllib.loads(example)
        file = tmp_path / f"{number}.toml"
        file.write_text(example, encoding="utf-8")
        settings, problems = load(file, [], {}, None, backend="")
        wrong = [str(problem) for problem in problems if problem.path != "backend"]  # a part need not choose
        assert wrong == [], example
        assert settings.sources


def test_every_table_has_rows() -> None:
    assert all(rules for rules, _ in TABLES.values())
