"""A child that writes to stderr without end or without lines is read all the same, and its last words are told."""

from __future__ import annotations

import asyncio
import sys

import pytest

from backends import _llama_process
from backends._llama_process import LlamaProcess

TALKS = """
import json, sys
sys.stderr.write("x" * 9_000_000)
for number in range(20_000):
    sys.stderr.write(f"line {number}\\n")
sys.stderr.write("\\x1b[31mlast words")
sys.stderr.flush()
request = json.loads(sys.stdin.readline())
print(json.dumps({"id": request["id"], "done": "stop"}), flush=True)
sys.stdin.read()
sys.exit(3)
"""


async def test_a_child_that_talks_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_llama_process, "command", lambda: [sys.executable, "-c", TALKS])
    process = await LlamaProcess.start()
    async with asyncio.timeout(60):
        assert (await process.ask("generate").next())["done"] == "stop"
        await process.aclose()
    assert not process.alive
    message = process.crash().message
    assert "ended with code 3" in message
    assert message.endswith("Its last line: \ufffd[31mlast words")
