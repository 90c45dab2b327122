"""`midfill doctor`: what is set up, where it comes from, and whether the backend works."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from backends.base import Backend, BackendError, ChatPrompt, Check, ErrorKind, InfillPrompt
from backends.llama_build import build_check
from backends.model_table import EMBEDDED
from backends.settings import BackendSettings
from completion.prompt import Material, build
from completion.prompt.families import choose
from lsp_server import cli, compose, fds
from lsp_server.commands._place import root_of
from lsp_server.commands._terminal import Terminal, note
from lsp_server.settings import Problem, Settings, load, project_files, user_file
from lsp_server.version import version

_ANSWERED = ("request", "speed")  # ends of names: checks that are ok only if text came


class _Notices:
    """An observer that keeps what it is told, for the report."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {}
        self._begun: set[str] = set()

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        name = "family" if key.startswith("family") else "backend"
        self.checks.setdefault(key, Check(name, ok=not warning, detail=message))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        if not done and key not in self._begun:
            self._begun.add(key)
            note(f"{title} …")


@dataclass(frozen=True, slots=True)
class Report:
    files: tuple[tuple[str, bool], ...]
    sources: Mapping[str, str]
    values: Mapping[str, str | None]
    problems: tuple[Problem, ...]
    backends: tuple[dict[str, Any], ...]  # in the order they are asked; empty: none is chosen
    built: bool  # False: the settings of one are wrong, or none may be asked
    checks: tuple[Check, ...]

    @property
    def code(self) -> int:
        if self.problems or not self.built:
            return cli.USAGE
        return cli.DONE if all(check.ok or check.warning for check in self.checks) else cli.BACKEND_FAILURE

    def as_json(self) -> dict[str, Any]:
        return {
            "version": version(),
            "python": platform.python_version(),
            "system": platform.platform(),
            "files": [{"path": path, "exists": exists} for path, exists in self.files],
            "sources": dict(self.sources),
            "values": {path: None if value is None else json.loads(value) for path, value in self.values.items()},
            "problems": [asdict(problem) for problem in self.problems],
            "backend": self.backends[0] if self.backends else None,
            "backends": list(self.backends),
            "checks": [asdict(check) for check in self.checks],
            "ok": self.code == cli.DONE,
        }

    def as_text(self) -> str:
        lines = [f"midfill {version()}, Python {platform.python_version()}, {platform.platform()}", "", "settings"]
        lines += [f"  {'read' if exists else 'none'}  {path}" for path, exists in self.files]
        lines += [f"  set   {self._setting(path)} ({source})" for path, source in self.sources.items()]
        lines += [f"  FAIL  {problem}" for problem in self.problems]
        lines += ["", "backend"]
        for backend in self.backends:
            lines += [f"  {name}: {value}" for name, value in backend.items() if value]
        lines += [_line(check) for check in self.checks]
        return "\n".join([*lines, "", self.verdict])

    def _setting(self, path: str) -> str:
        value = self.values.get(path)
        return path if value is None else f"{path} = {value}"

    @property
    def verdict(self) -> str:
        if self.code == cli.DONE and all(check.ok for check in self.checks):
            return "All is well."
        if self.code == cli.DONE:
            return "Suggestions can be had. What is marked warn could be better."
        if any(check.ok and check.name.endswith(_ANSWERED) for check in self.checks):
            return "Suggestions can be had. What is marked FAIL is missing or left out."
        return "No suggestions until what is marked FAIL is put right."


def _line(check: Check) -> str:
    detail = check.detail.rstrip("\n").replace("\n", "\n        ")
    mark = "ok  " if check.ok else "warn" if check.warning else "FAIL"
    return f"  {mark}  {check.name}: {detail}"


def command(arguments: argparse.Namespace) -> int:
    root = root_of(Path.cwd() / "file")
    settings, problems = load(arguments.config, [root], os.environ, None)
    files = [arguments.config or user_file(), *project_files([root])]
    with fds.take_stdout() as out:
        built, checks = _checks(settings)
        described = tuple(_describe(name, settings.backends[name]) for name in settings.order)
        found = tuple((str(file), file.is_file()) for file in files)
        report = Report(found, settings.sources, settings.values, problems, described, built, checks)
        Terminal(out).result(json.dumps(report.as_json()) if arguments.json else report.as_text())
    return report.code


def _describe(name: str, settings: BackendSettings) -> dict[str, Any]:
    try:
        host = urlsplit(settings.url).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    embedded = settings.kind == "llama-cpp" and not settings.model_path and settings.model in ("", EMBEDDED.name)
    return {
        "name": name,
        "kind": settings.kind,
        "host": host,
        "model": EMBEDDED.name if embedded else settings.model,
        "model_path": settings.model_path,
    }


def _checks(settings: Settings) -> tuple[bool, tuple[Check, ...]]:
    """Whether the settings of all backends can be used, and what there is to say about them."""
    notices = _Notices()
    backends = compose.build_backends(settings, notices)
    refused = {backend.name: why for backend in backends if (why := compose.refusal(backend, settings))}
    usable = len(backends) == len(settings.order) and len(refused) < len(backends)
    checks: list[Check] = []
    for backend in backends:
        found: tuple[Check, ...]
        if backend.name in refused:  # with others to ask, this is what the user wants
            found = (Check("privacy", len(refused) < len(backends), refused[backend.name]),)
        else:
            right, found = asyncio.run(_probe(backend, compose.family_of(settings.backends[backend.name]), notices))
            usable = usable and right
            if settings.backends[backend.name].kind == "llama-cpp":
                found = (*found, build_check())
        alone = len(settings.order) == 1
        checks += found if alone else [replace(check, name=f"{backend.name}: {check.name}") for check in found]
    said = {check.detail for check in checks}
    more = [check for check in notices.checks.values() if check.detail not in said]
    return usable, (*checks, *more)


async def _probe(backend: Backend, family: str, notices: _Notices) -> tuple[bool, tuple[Check, ...]]:
    """Whether the settings are right, and the checks."""
    right = True
    async with aclosing(backend):
        try:
            await backend.prepare()
        except BackendError as error:  # said by the probe, too, with more around it
            right = error.kind is not ErrorKind.SETTINGS
        try:
            checks = (await backend.probe()).checks
        except BackendError as error:
            return right, (Check(error.kind.value, ok=False, detail=error.message),)
        works = any(check.ok and check.name == "request" for check in checks)
        if works:
            checks = (*checks, Check("asked with", ok=True, detail=_asked(backend, family, notices)))
        return right, checks


def _asked(backend: Backend, family_name: str, notices: _Notices) -> str:
    """What the engine would send to a backend that was probed."""
    family = choose(family_name, backend.model, notices)
    match build(Material("a", "b", "python"), family, backend.capabilities).prompt:
        case InfillPrompt():
            notices.checks.pop(f"family-guess:{backend.model}", None)  # the form is the service's business
            return "the text on both sides of the cursor; the service forms the prompt"
        case ChatPrompt():
            return "a chat about the text on both sides of the cursor"
        case _ if family.fim:
            return f"the text on both sides of the cursor, in the form of the model family {family.name}"
        case _:
            return "the text before the cursor alone; if the model is trained to infill, set family"
