"""The contract as a whole: every kind has a service, every case runs, the page shows the table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backends import registry
from lsp_server.settings import load
from tests.backends.contract import LOCAL, PAGE, WITHOUT, Notices, cases, filled, kind_of, kinds, table


def test_every_kind_has_a_service() -> None:
    assert set(registry.KINDS) >= LOCAL.keys()
    for name in kinds():
        found = kind_of(name)
        assert found.model is not None
        assert not found.settings.keys() & {"kind", "url", "model", "key_env"}


def test_what_a_kind_is_without_concerns_cases() -> None:
    needed = {need for case in cases().values() for need in case.needs}
    assert WITHOUT.keys() <= set(kinds())
    assert {ability for lacks in WITHOUT.values() for ability in lacks} <= needed


def test_the_table() -> None:
    """`pytest -s` shows it."""
    shown = table()
    print(shown)
    lines = shown.split("\n")
    assert len([line for line in lines if line.startswith("| ")]) == len(cases()) + 1
    assert all(f"`{name}`" in lines[0] for name in kinds())


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert page() == filled(page()), "run: python -m tests.backends.contract"


def test_a_changed_page_is_noticed() -> None:
    changed = page().replace("| 402 | ok", "| 402 | n.a.")
    assert changed != filled(changed) == page()
    with pytest.raises(ValueError, match="0 places"):
        filled(page().replace("<!-- contract, made", "<!-- made"))


def test_every_kind_has_a_section() -> None:
    assert set(re.findall(r"^## `([\w-]+)`$", page(), flags=re.MULTILINE)) == set(registry.KINDS)


@pytest.mark.parametrize("kind", registry.KINDS)
def test_the_example_of_each_section(kind: str, tmp_path: Path) -> None:
    section = page().split(f"\n## `{kind}`\n")[1].split("\n## ")[0]
    (example,) = re.findall(r"^```toml\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    assert "- Prompts: " in section
    assert "- `midfill doctor` " in section
    file = tmp_path / "config.toml"
    file.write_text(example, encoding="utf-8")
    settings, problems = load(file, [], {}, None, backend="")
    assert [str(problem) for problem in problems if problem.path != "backend"] == []
    named = {name: each for name, each in settings.backends.items() if f"[backends.{name}]" in example}
    assert {each.kind for each in named.values()} == {kind}
    for name, each in named.items():
        if kind not in LOCAL:  # that one wants its file
            assert registry.create(name, each, Notices()).name == name
