"""A local model's worker process as a test drives it: lines in, lines out, no parent of ours between."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from backends._llama_process import command, environment

needs_llama = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None, reason="llama-cpp-python not installed")


class Child:
    """Use as a context manager. `lines` keeps every line the child wrote."""

    def __init__(self, arguments: Sequence[str] | None = None) -> None:
        self.process = subprocess.Popen(
            arguments or command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        self.lines: list[bytes] = []
        self._number = 0

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()

    def send(self, operation: str, **fields: Any) -> int:
        self._number += operation != "cancel"
        self.write({"id": self._number, "op": operation, **fields})
        return self._number

    def write(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the child ended"
        self.lines.append(line)
        reply: dict[str, Any] = json.loads(line)
        return reply

    def last(self) -> dict[str, Any]:
        """The final reply to the request, with all text that came before it."""
        text = ""
        while True:
            reply = self.read()
            text += reply.get("text", "")
            if "done" in reply or "error" in reply:
                return {"text": text, **reply}

    def load(self, path: Path, context_tokens: int = 4096) -> dict[str, Any]:
        self.send("load", path=str(path), context_tokens=context_tokens, threads=1, gpu_layers=0, kv_type="f16")
        return self.last()

    def start(self, prompt: dict[str, Any], max_tokens: int = 16, **fields: Any) -> int:
        request = {"temperature": 0, "stop": [], "parameters": {}, "debug": True, **fields}
        return self.send("generate", prompt=prompt, max_tokens=max_tokens, **request)

    def ask(self, prompt: dict[str, Any], max_tokens: int = 16, **fields: Any) -> dict[str, Any]:
        self.start(prompt, max_tokens, **fields)
        return self.last()


def infill(prefix: str, suffix: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "infill", "prefix": prefix, "suffix": suffix, "path": None, "repo": None, "extra": [], **fields}


def raw(*pieces: str | tuple[str, bool], suffix: str = "") -> dict[str, Any]:
    """Plain text, or (text, True) for a special piece."""
    parts = [piece if isinstance(piece, tuple) else (piece, False) for piece in pieces]
    return {"kind": "raw", "pieces": parts, "suffix": suffix}
