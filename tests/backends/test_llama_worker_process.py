"""The local model's process: how it ends, what it prints, what it imports, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backends._llama_process import _ROOT
from tests import tiny_gguf
from tests.llama_child import Child, needs_llama, raw

pytestmark = needs_llama


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def plain_model(folder: Path) -> Path:
    follows = {"x": "Ċ", "Ċ": "ĠĠ", "ĠĠ": "q", "q": "Ġ", "y": "z"}
    return tiny_gguf.scripted(folder / "plain.gguf", follows, fim=False)


@pytest.fixture(scope="module")
def slow_model(folder: Path) -> Path:
    """A batch of its prompt takes long enough for a cancel to arrive within it."""
    return tiny_gguf.random(folder / "slow.gguf", width=384, layers=8)


class TestProcess:
    def test_it_ends_when_stdin_closes(self, plain_model: Path) -> None:
        with Child() as child:
            child.load(plain_model)
            assert child.process.stdin is not None
            child.process.stdin.close()
            assert child.process.wait(20) == 0

    def test_it_ends_in_the_middle_of_a_prompt(self, slow_model: Path) -> None:
        with Child() as child:
            child.load(slow_model)
            child.start(raw("".join(chr(97 + i * i % 26) for i in range(2000))), 100)
            assert child.read()["evaluated"] < 2000
            assert child.process.stdin is not None
            child.process.stdin.close()
            assert child.process.wait(20) == 0

    def test_what_is_printed_never_reaches_the_protocol(self, plain_model: Path) -> None:
        code = (
            "import os, sys, ctypes; sys.path.insert(0, sys.argv[1]); from backends.llama_worker import main as worker;"
            "take = worker.take_stdout\n"
            "def noisy():\n"
            "    out = take(); os.write(1, b'from C\\n'); print('from Python', flush=True); return out\n"
            "worker.take_stdout = noisy; worker.main()"
        )
        with Child([sys.executable, "-E", "-P", "-c", code, str(_ROOT)]) as child:
            child.load(plain_model)
            child.ask(raw("x"))
            assert all("id" in json.loads(line) for line in child.lines)
            child.process.kill()
            assert child.process.stderr is not None
            errors = child.process.stderr.read()
            assert b"from C" in errors
            assert b"from Python" in errors

    def test_llama_cpp_is_quiet(self, plain_model: Path) -> None:
        with Child() as child:
            child.load(plain_model)
            child.ask(raw("x"))
            child.process.kill()
            assert child.process.stderr is not None
            errors = [line for line in child.process.stderr.read().split(b"\n") if b"llama" in line or b"ggml" in line]
            assert errors == []

    def test_modules_of_the_users_folder_are_not_imported(self, tmp_path: Path, plain_model: Path) -> None:
        for name in ("backends", "llama_cpp", "json", "numpy", "queue"):
            (tmp_path / f"{name}.py").write_text("raise SystemExit('hostile')")
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        from backends._llama_process import command

        load: dict[str, Any] = {"id": 1, "op": "load", "path": str(plain_model), "context_tokens": 256}
        line = json.dumps({**load, "threads": 1, "gpu_layers": 0, "kv_type": "f16"}).encode() + b"\n"
        with subprocess.Popen(
            command(), cwd=tmp_path, env=environment, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL
        ) as child:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(line)
            child.stdin.flush()
            replies = [json.loads(child.stdout.readline())]
            while not {"done", "error"} & replies[-1].keys():
                replies.append(json.loads(child.stdout.readline()))
            child.stdin.close()
        assert replies[-1].get("done") == "loaded"

    @pytest.mark.parametrize("keep", [0.9, 0.3], ids=["in its tensors", "in its vocabulary"])
    def test_a_damaged_file_is_refused(self, tmp_path: Path, plain_model: Path, keep: float) -> None:
        data = plain_model.read_bytes() if keep > 0.5 else plain_model.read_bytes()[:2000]
        damaged = tmp_path / "damaged.gguf"
        damaged.write_bytes(data[: int(len(data) * keep)])
        with Child() as child:
            answer = child.load(damaged)
            assert answer["error"] == "bad-model"
            assert "no reason given" not in answer["message"]
            assert child.load(plain_model)["done"] == "loaded"
