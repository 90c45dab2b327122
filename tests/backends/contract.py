"""The contract every backend over HTTP meets: its kinds, its cases, and the bench a case runs on.

A case is a test marked with `@case`; it runs against the real loopback service of every kind that is able to have it.
`table()` shows all of it; `python -m tests.backends.contract` writes it to docs/backends.md.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from backends import registry
from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    ChatPrompt,
    Delta,
    ErrorKind,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
)
from backends.settings import BackendSettings
from tests.services.common import Answer, LoopbackService

KEY = "canary-5f4dcc3b5aa765d61d8327deb882cf99"  # must never be seen but in what the service gets
KEY_ENV = "MIDFILL_TEST_KEY"
LOCAL = {"llama-cpp": "runs on this machine, without HTTP"}

# What a kind cannot do, and so which cases it cannot have: kind -> ability -> why.
_TABBY = "Tabby answers whole, without a reason or counts"
WITHOUT: Mapping[str, Mapping[str, str]] = {
    "tabby": {"stream": _TABBY, "finish": _TABBY, "usage": _TABBY},
}

FILES = ("answers", "status", "bodies", "network")  # test_contract_*.py, in the table's order

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "backends.md"
PREFIX, SUFFIX = "def add(a, b):\n    ", "\n\nadd(1, 2)\n"


@dataclass(frozen=True)
class Kind:
    name: str
    service: type[LoopbackService]
    model: str
    settings: Mapping[str, Any]
    target: str  # "module:Class" of the backend


@dataclass(frozen=True)
class Case:
    needs: tuple[str, ...]  # abilities
    file: str  # of FILES
    run: Callable[[Bench], Coroutine[Any, Any, None]]


CASES: dict[str, Case] = {}  # by name; filled by `@case`; `cases()` has all


def kind_of(name: str, target: str = "") -> Kind:
    """By the convention that tests/services/common.py tells. `target`: of a kind that is not in the registry."""
    module = importlib.import_module(f"tests.services.{name.replace('-', '_')}")
    return Kind(name, module.Service, module.MODEL, module.SETTINGS, target or registry.KINDS[name])


def kinds() -> list[str]:
    return [name for name in registry.KINDS if name not in LOCAL]


def lacking(kind: str, needs: tuple[str, ...]) -> str:
    """Why a kind cannot have a case; empty if it can."""
    return next((why for ability, why in WITHOUT.get(kind, {}).items() if ability in needs), "")


def case(name: str, *needs: str) -> Callable[[Callable[[Bench], Coroutine[Any, Any, None]]], Any]:
    """Make a test of `bench` a case of the contract. After it the next request works, and no key shows."""

    def made(body: Callable[[Bench], Coroutine[Any, Any, None]]) -> Any:
        @functools.wraps(body)
        async def test(bench: Bench) -> None:
            await body(bench)
            await bench.afterwards()

        CASES[name] = Case(needs, body.__module__.rpartition("_")[2], test)
        able = [kind for kind in kinds() if not lacking(kind, needs)]
        return pytest.mark.parametrize("kind", able, indirect=True)(test)

    return made


def cases() -> dict[str, Case]:
    """All of them, in the table's order."""
    for name in FILES:
        importlib.import_module(f"tests.backends.test_contract_{name}")
    return dict(sorted(CASES.items(), key=lambda item: FILES.index(item[1].file)))


class Notices:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, str]] = []

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        self.notices.append((key, message))

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        pass


@dataclass
class Bench:
    """A kind, its running service, and backends of it, which are closed at the end."""

    kind: Kind
    service: LoopbackService
    caplog: pytest.LogCaptureFixture
    capfd: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch
    stack: AsyncExitStack
    notices: Notices = field(default_factory=Notices)
    errors: list[BackendError] = field(default_factory=list)

    def build(self, **settings: Any) -> Backend:
        """A backend as it is, with nothing around it that would ask again."""
        module, _, attribute = self.kind.target.partition(":")
        defaults = {"url": self.service.url, "model": self.kind.model, "key_env": KEY_ENV, **self.kind.settings}
        chosen = BackendSettings(kind=self.kind.name, **(defaults | settings))
        backend: Backend = getattr(importlib.import_module(module), attribute)("work", chosen, self.notices)
        self.stack.push_async_callback(backend.aclose)
        return backend

    @functools.cached_property
    def backend(self) -> Backend:
        return self.build()

    async def deltas(self, backend: Backend | None = None) -> list[Delta]:
        chosen = backend or self.backend
        async with aclosing(chosen.stream(request_for(chosen))) as deltas:
            return [delta async for delta in deltas]

    async def text(self, backend: Backend | None = None) -> str:
        return "".join(delta.text for delta in await self.deltas(backend))

    async def fails(self, kind: ErrorKind | None, *words: str, backend: Backend | None = None) -> BackendError:
        """A request fails like this; its message is fit for a user and holds these words."""
        with pytest.raises(BackendError) as caught:
            await self.deltas(backend)
        error = caught.value
        assert kind in (error.kind, None), error.message
        assert error.message.strip()
        assert "\n" not in error.message
        assert all(word in error.message for word in words), error.message
        self.errors.append(error)
        return error

    async def afterwards(self) -> None:
        """The same backend is fit for the next request, and nothing that anyone can read holds the key."""
        self.service.reset()
        assert await self.text() == Answer().text
        shown = [error.message for error in self.errors] + [str(notice) for notice in self.notices.notices]
        shown += [str(record.__dict__) + record.getMessage() for record in self.caplog.records]
        output = self.capfd.readouterr()
        everything = "\n".join([*shown, self.caplog.text, output.out, output.err])
        assert KEY not in everything
        assert "Traceback" not in everything
        assert not [r for r in self.caplog.records if r.levelno > logging.DEBUG and "add(" in r.getMessage()]


@asynccontextmanager
async def bench_for(
    kind: Kind,
    service: LoopbackService,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Bench]:
    """A bench with the key set and all logs kept."""
    monkeypatch.setenv(KEY_ENV, KEY)
    caplog.set_level(logging.DEBUG)
    service.reset()
    async with AsyncExitStack() as stack:
        yield Bench(kind, service, caplog, capfd, monkeypatch, stack)


def request_for(backend: Backend) -> BackendRequest:
    """The question of all cases, in the shape that the backend likes best."""
    shapes = backend.capabilities.shapes
    if Shape.INFILL in shapes:
        prompt: InfillPrompt | RawPrompt | ChatPrompt = InfillPrompt(PREFIX, SUFFIX)
    elif Shape.RAW in shapes:
        prompt = RawPrompt((Piece(PREFIX),))
    else:
        prompt = ChatPrompt((Message("user", f"Continue:\n{PREFIX}"),))
    return BackendRequest(prompt, max_tokens=32, stop=("\n\n",))


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def table() -> str:
    """Kind x case in Markdown: "ok", or a letter whose line below says why the kind cannot have the case."""
    names, reasons = kinds(), list(dict.fromkeys(why for lacks in WITHOUT.values() for why in lacks.values()))
    lines = [f"| case | {' | '.join(f'`{name}`' for name in names)} |", "|---" * (len(names) + 1) + "|"]
    for title, case_ in cases().items():
        cells = [_cell(lacking(name, case_.needs), reasons) for name in names]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    notes = [f"n.a. {number}: {why}." for number, why in enumerate(reasons, 1)]
    notes += [f"`{kind}` is not in the table: it {why}." for kind, why in LOCAL.items()]
    return "\n".join([*lines, "", *[f"- {note}" for note in notes]])


def filled(page: str) -> str:
    """docs/backends.md with the table as it should be."""
    marks = r"(<!-- contract, made by tests/backends/contract\.py -->\n).*?(<!-- end -->)"
    page, count = re.subn(marks, lambda match: f"{match[1]}\n{table()}\n\n{match[2]}", page, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"the page has {count} places for the table")
    return page


def _cell(why: str, reasons: list[str]) -> str:
    return f"n.a. {reasons.index(why) + 1}" if why else "ok"


if __name__ == "__main__":
    from tests.backends import contract  # the module that the cases register in, which this one is not

    PAGE.write_text(contract.filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
