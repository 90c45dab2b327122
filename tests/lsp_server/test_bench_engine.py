"""`midfill bench engine`: what it counts, what it leaves out, and each time with a tiny model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

from backends._llama_process import environment
from backends.base import Backend, SilentObserver
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings
from lsp_server.bench import children, evaluated, figures, speed
from lsp_server.bench.alone import own_worker
from lsp_server.bench.children import Child, LeftOutError
from lsp_server.bench.figures import Figure
from lsp_server.bench.recording import Run, Session
from tests import tiny_gguf
from tests.llama_child import needs_llama
from tests.lsp_server.commandline import midfill

SOURCE = (Path(__file__).resolve().parent.parent.parent / "backends" / "base.py").read_text(encoding="utf-8")
SESSION = Session({"a.py": "a\nb\nc", "b.py": ""}, (Run(1, "a.py", 1, 0, ("xy",)), Run(1, "b.py", 0, 0, ("z",))))


def test_the_server_is_sent_the_lines_around_the_cursor() -> None:
    text = "".join(f"{number}\n" for number in range(400))
    cursor = text.index("300\n") + 2
    body = evaluated.window(text, cursor)
    assert body["prompt"] == "30"
    assert body["input_prefix"] == "".join(f"{number}\n" for number in range(300 - 256, 300))
    assert body["input_suffix"] == "0\n" + "".join(f"{number}\n" for number in range(301, 301 + 64))
    assert evaluated.window("ab", 1) == {"input_prefix": "", "prompt": "a", "input_suffix": "b\n\n"}


def test_the_files_are_seen_as_they_are_after_each_key() -> None:
    seen = [(moment.text, moment.key.cursor) for moment in evaluated.moments([SESSION, SESSION], 5)]
    assert seen == [("ax\nb\nc", 2), ("axy\nb\nc", 3), ("z", 1), ("ax\nb\nc", 2), ("axy\nb\nc", 3)]
    assert len(list(evaluated.moments([SESSION], 0))) == 3


async def test_the_first_key_of_a_session_does_not_count() -> None:
    async def ask(moment: evaluated.Moment) -> tuple[int, int]:
        return moment.number, 10

    counts = await evaluated.replay(evaluated.moments([SESSION, SESSION], 0), ask)
    assert (counts.evaluated, counts.prompt) == ([2, 3, 5, 6], [12, 13, 15, 16])
    assert (counts.median, counts.mean) == (4, 4)


@pytest.mark.parametrize(
    ("bar", "at_least", "met"),
    [(2.0, False, True), (1.9, False, False), (2.0, True, True), (2.1, True, False), (None, True, None)],
)
def test_a_figure_meets_its_bar(bar: float | None, at_least: bool, met: bool | None) -> None:
    assert Figure("x", 2.0, bar=bar, at_least=at_least).met is met
    assert Figure("x", None, bar=bar, at_least=at_least).met is None


def test_figures_as_a_table_and_as_json() -> None:
    lines = figures.shown(
        [Figure("decoding", 0.985, "×", 0.98, at_least=True, note="fast"), Figure("other", None, note="no")]
    )
    assert [line.split() for line in lines.split("\n")] == [
        ["value", "unit", "goal", "note"],
        ["decoding", "0.985", "×", "≥", "0.98", "met", "fast"],
        ["left", "out:", "other:", "no"],
    ]
    assert Figure("a", 300.4).as_json()["met"] is None


def test_what_is_not_there_is_left_out() -> None:
    with pytest.raises(LeftOutError, match=r"benchmarks/missing.py of a checkout"):
        children.script("missing.py")
    with pytest.raises(LeftOutError, match="no_such_package is not installed"):
        children.script("bare_llama.py", "no_such_package")
    assert children.script("bare_llama.py", "json").is_file()


async def test_a_child_that_ends_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "child.py"
    path.write_text("import sys\nprint(sys.stdin.readline().strip(), flush=True)\nsys.exit(3)\n")
    async with Child(path, environment()) as child:
        assert await child.ask("echo", word="ä") == {"op": "echo", "word": "ä"}
        with pytest.raises(LeftOutError, match=r"child.py ended with code 3"):
            await child.ask("echo")


def test_only_a_local_engine_is_measured(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[backends.work]\nkind = "ollama"\nmodel = "m"\n')
    done = midfill("bench", "engine", "--config", str(config), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'of kind "ollama"' in done.stderr


def test_a_recording_that_is_none_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "typing.json").write_text("[]")
    config = tmp_path / "c.toml"
    config.write_text('[backends.work]\nkind = "llama-cpp"\n')
    arguments = ["bench", "engine", "--config", str(config), "--only", "keys", "--typing", "typing.json"]
    done = midfill(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "typing.json is no recording" in done.stderr


@pytest.fixture
async def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Backend]:
    monkeypatch.setattr(speed, "PROMPT_CHARACTERS", 900)
    path = tiny_gguf.random(tmp_path / "tiny.gguf")
    tiny = LlamaCppBackend("tiny", BackendSettings("llama-cpp", model_path=str(path), threads=1), SilentObserver())
    async with aclosing(tiny):
        await tiny.prepare()
        yield tiny


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Child]:
    async with Child(children.script("bare_llama.py"), environment()) as child:
        path = tiny_gguf.random(tmp_path / "bare.gguf")
        await child.ask("load", path=str(path), threads=1, context_tokens=2048, nice=0)
        yield child


@needs_llama
async def test_times_beside_llama_cpp_alone(backend: Backend, bare: Child) -> None:
    found = [
        *await speed.decode(backend, bare, 2),
        *await speed.cold_prompt(lambda: nullcontext(backend), backend, bare, 2, SOURCE),
        *await speed.keystroke(backend, bare, SOURCE, 3),
    ]
    assert [each.bar for each in found] == [0.98, 1.05, None, 1.2]
    assert all(each.value is not None and each.value > 0 for each in found)
    keys = await bare.ask("keystroke", before="x = 1", after="x = 12")
    assert (keys["new"], keys["tokens"]) == (1, 6)
    assert (await bare.ask("keystroke", before="x = 1", after="y = 1"))["new"] == 5


@needs_llama
async def test_several_answers_are_timed_beside_one(backend: Backend) -> None:
    found = await speed.candidates(backend, 2, SOURCE)
    assert [each.name for each in found] == ["3 candidates to one, prompt known", "3 candidates to one, prompt new"]
    assert all(each.value is not None and each.value > 0 for each in found)


@needs_llama
async def test_prompt_lookup_writes_what_decoding_writes_in_fewer_batches(bare: Child) -> None:
    text = "abcabcabcd" * 8
    looked_up = await bare.ask("lookup", text=text, count=120)
    decoded = await bare.ask("decode", text=text, count=120)
    assert looked_up["written"][:120] == decoded["written"]
    assert looked_up["batches"] < looked_up["tokens"]
    found = await speed.looked_up(bare, 2, SOURCE[:900])
    assert [each.name for each in found] == ["prompt lookup, repeated code", "prompt lookup, other code"]
    assert all(each.value is not None and each.value > 0 for each in found)


@needs_llama
async def test_a_cancel_is_timed_in_the_prompt_and_while_decoding(backend: Backend) -> None:
    found = await speed.cancelled(backend, 2, SOURCE)
    assert [each.name for each in found] == ["cancel to idle, in the prompt", "cancel to idle, while decoding"]
    assert all(each.value is not None and each.value >= 0 for each in found)


@needs_llama
async def test_an_answer_too_short_to_be_timed_is_left_out(tmp_path: Path, bare: Child) -> None:
    path = tiny_gguf.scripted(tmp_path / "short.gguf", {",": "4", "4": "5"})
    tiny = LlamaCppBackend("tiny", BackendSettings("llama-cpp", model_path=str(path), threads=1), SilentObserver())
    async with aclosing(tiny):
        with pytest.raises(LeftOutError, match="tokens only"):
            await speed.decode(tiny, bare, 1)


@needs_llama
@pytest.mark.model
def test_tokens_per_key_with_the_embedded_vocabulary(tmp_path: Path) -> None:
    done = midfill("bench", "engine", "--only", "keys", "--keys", "12", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {each["name"]: each for each in json.loads(done.stdout)["figures"]}
    for words in ("infill", "prefix only"):
        assert found[f"tokens per key, {words}: ours"]["value"] >= 1
        peer = found[f"tokens per key, {words}: llama-server, preset"]
        assert (peer["value"] is not None) is (find_spec("xllamacpp") is not None and sys.platform == "linux"), peer


@pytest.mark.skipif(sys.platform == "win32", reason="workers are not shared there")
@needs_llama
async def test_a_bench_has_a_worker_of_its_own(tmp_path: Path) -> None:
    path = tiny_gguf.random(tmp_path / "tiny.gguf")
    settings = BackendSettings("llama-cpp", model_path=str(path), threads=1)
    first, second, apart = (LlamaCppBackend("tiny", settings, SilentObserver()) for _ in range(3))
    before = os.environ.get("XDG_RUNTIME_DIR")
    async with aclosing(first), aclosing(second), aclosing(apart):
        await first.prepare()
        with own_worker():
            await second.prepare()
        await apart.prepare()
        assert os.environ.get("XDG_RUNTIME_DIR") == before
        assert first.pid == apart.pid != second.pid
