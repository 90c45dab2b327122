"""Child processes that measure llama.cpp without us: scripts of `benchmarks/`, which only a checkout has.

One JSON object a line each way. Knows no figure.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent.parent / "benchmarks"
_LINE_BYTES = 1 << 24  # of an answer


class LeftOutError(Exception):
    """Something cannot be measured here. The message says why."""


def script(name: str, *packages: str) -> Path:
    """A script of `benchmarks/` and what it imports. Raises LeftOutError."""
    path = FOLDER / name
    if not path.is_file():
        raise LeftOutError(f"it needs benchmarks/{name} of a checkout of midfill")
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise LeftOutError(f"the package {package} is not installed (extra `benchmark`)")
    return path


class Child:
    """Use as an asynchronous context manager. One question at a time."""

    def __init__(self, path: Path, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Child:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(self._path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(self._environment),
            limit=_LINE_BYTES,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def ask(self, operation: str, **fields: Any) -> dict[str, Any]:
        """Raises LeftOutError if the child has ended."""
        assert self._process is not None
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({"op": operation, **fields}).encode() + b"\n")
        line = await stdout.readline()
        if not line:
            code = await self._process.wait()
            raise LeftOutError(f"{self._path.name} ended with code {code}")
        answer: dict[str, Any] = json.loads(line)
        return answer
