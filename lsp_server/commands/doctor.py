"""`midfill doctor`: what is set up, where it comes from, and whether the backend works."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backends.base import Backend, BackendError, Check
from backends.settings import BackendSettings
from lsp_server import cli, compose, fds
from lsp_server.commands._place import root_of
from lsp_server.commands._terminal import Terminal
from lsp_server.settings import Problem, Settings, load, project_files, user_file
from lsp_server.version import version


class _Notices:
    """An observer that keeps what it is told, for the report."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {}

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        self.checks.setdefault(key, Check("backend", ok=not warning, detail=message))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if not done and fraction is None:
            sys.stderr.write(f"midfill: {title} …\n")


@dataclass(frozen=True, slots=True)
class Report:
    files: tuple[tuple[str, bool], ...]
    sources: Mapping[str, str]
    problems: tuple[Problem, ...]
    backend: dict[str, Any] | None  # None: none is chosen
    built: bool  # False: its settings are wrong
    checks: tuple[Check, ...]

    @property
    def code(self) -> int:
        if self.problems or not self.built:
            return cli.USAGE
        return cli.DONE if all(check.ok for check in self.checks) else cli.BACKEND_FAILURE

    def as_json(self) -> dict[str, Any]:
        return {
            "version": version(),
            "python": platform.python_version(),
            "system": platform.platform(),
            "files": [{"path": path, "exists": exists} for path, exists in self.files],
            "sources": dict(self.sources),
            "problems": [asdict(problem) for problem in self.problems],
            "backend": self.backend,
            "checks": [asdict(check) for check in self.checks],
            "ok": self.code == cli.DONE,
        }

    def as_text(self) -> str:
        lines = [f"midfill {version()}, Python {platform.python_version()}, {platform.platform()}", "", "settings"]
        lines += [f"  {'read' if exists else 'none'}  {path}" for path, exists in self.files]
        lines += [f"  set   {path} ({source})" for path, source in self.sources.items()]
        lines += [f"  FAIL  {problem}" for problem in self.problems]
        lines += ["", "backend"]
        if self.backend:
            lines += [f"  {name}: {value}" for name, value in self.backend.items() if value]
        lines += [_line(check) for check in self.checks]
        return "\n".join(lines)


def _line(check: Check) -> str:
    detail = check.detail.rstrip("\n").replace("\n", "\n        ")
    return f"  {'ok  ' if check.ok else 'FAIL'}  {check.name}: {detail}"


def command(arguments: argparse.Namespace) -> int:
    root = root_of(Path.cwd() / "file")
    settings, problems = load(arguments.config, [root], os.environ, None)
    files = [arguments.config or user_file(), *project_files([root])]
    with fds.take_stdout() as out:
        built, checks = _checks(settings)
        chosen = settings.backends.get(settings.backend)
        described = _describe(settings.backend, chosen) if chosen else None
        found = tuple((str(file), file.is_file()) for file in files)
        report = Report(found, settings.sources, problems, described, built, checks)
        Terminal(out).result(json.dumps(report.as_json()) if arguments.json else report.as_text())
    return report.code


def _describe(name: str, settings: BackendSettings) -> dict[str, Any]:
    try:
        host = urlsplit(settings.url).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    embedded = settings.kind == "llama-cpp" and not settings.model_path
    return {
        "name": name,
        "kind": settings.kind,
        "host": host,
        "model": "embedded" if embedded else settings.model,
        "model_path": settings.model_path,
    }


def _checks(settings: Settings) -> tuple[bool, tuple[Check, ...]]:
    """Whether the backend could be built, and what there is to say about it."""
    notices = _Notices()
    backend = compose.build_backend(settings, notices)
    checks = asyncio.run(_probe(backend)) if backend is not None else ()
    return backend is not None, (*checks, *notices.checks.values())


async def _probe(backend: Backend) -> tuple[Check, ...]:
    async with aclosing(backend):
        try:
            return (await backend.probe()).checks
        except BackendError as error:
            return (Check(error.kind.value, ok=False, detail=error.message),)
