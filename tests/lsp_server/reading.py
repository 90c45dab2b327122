"""Loads settings from texts, for the tests of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lsp_server.settings import Problem, Settings, load

WORK = '[backends.work]\nkind = "ffm"\nurl = "https://ffm.example/api"\n'


def read(
    tmp_path: Path,
    user: str | bytes = "",
    project: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
    client: Any = None,
) -> tuple[Settings, tuple[Problem, ...]]:
    file = tmp_path / "config.toml"
    file.write_bytes(user if isinstance(user, bytes) else user.encode())
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    if project is not None:
        (root / ".midfill.toml").write_bytes(project if isinstance(project, bytes) else project.encode())
    return load(file, [root], env or {}, client)


def only(problems: tuple[Problem, ...]) -> Problem:
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]
