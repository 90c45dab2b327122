"""Names of files on a hub, the folder they lie in, and the model that suits a machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from backends.model_store import Reference, hub_folder, reference_of
from backends.model_table import EMBEDDED, MODELS, OTHERS, Machine, recommend
from tests.llama_child import needs_llama
from tests.services.hub import Fault, Hub

ROOT = Path(__file__).resolve().parent.parent.parent
GB = 10**9


class TestNames:
    def test_a_name_of_the_table(self) -> None:
        for model in MODELS:
            reference = reference_of(model.name)
            if model is EMBEDDED:
                assert reference is None
            else:
                assert reference == Reference(model.repo, model.file, name=model.name)
                assert str(reference) == model.name
                written = f"{model.repo}:{model.file}"
                assert str(reference_of(written)) == written

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("me/Models:m.gguf", Reference("me/Models", "m.gguf")),
            ("me/Models:Q4/M-Q4.GGUF", Reference("me/Models", "Q4/M-Q4.GGUF")),
            ("me/Models:m.gguf@refs/pr/1", Reference("me/Models", "m.gguf", "refs/pr/1")),
            ("me/Models:m.gguf@v1.0", Reference("me/Models", "m.gguf", "v1.0")),
        ],
    )
    def test_a_file_of_a_repository(self, text: str, expected: Reference) -> None:
        assert reference_of(text) == expected
        assert str(expected) == text

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "me",
            "me/Models",
            "me/Models:",
            "me/Models:m.bin",
            "me/Models:../m.gguf",
            "me/Models:/m.gguf",
            "me/Models:a//m.gguf",
            "me/Models:m.gguf@",
            "me/Models:m.gguf@../../x",
            "me/Models:m.gguf@a b",
            "me/a/Models:m.gguf",
            "../Models:m.gguf",
            "./me:m.gguf",
            "C:/models/m.gguf",
            "C:\\models\\m.gguf",
            "/models/m.gguf",
            "https://example.com/me/Models:m.gguf",
        ],
    )
    def test_what_is_none(self, text: str) -> None:
        assert reference_of(text) is None


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"HF_HOME": "~/h"},
        {"HF_HOME": "$HOME/h"},
        {"XDG_CACHE_HOME": "/xdg"},
        {"HF_HUB_CACHE": "/cache", "HF_HOME": "/h"},
        {"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/h"},
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="paths of POSIX")
def test_the_folder_is_that_of_the_library(
    variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGINGFACE_", "XDG_CACHE"))]:
        monkeypatch.delenv(name)
    for name, value in {"HOME": str(tmp_path), **variables}.items():
        monkeypatch.setenv(name, value)
    code = "from huggingface_hub import constants; print(constants.HF_HUB_CACHE)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert str(hub_folder()) == done.stdout.rstrip("\n")


class TestRecommended:
    @pytest.mark.parametrize(
        ("machine", "expected"),
        [
            (Machine(0, 2), "smollm2-135m"),  # memory unknown
            (Machine(1 * GB, 2), "smollm2-135m"),
            (Machine(8 * GB, 2), "qwen2.5-coder-0.5b"),
            (Machine(64 * GB, 4), "qwen2.5-coder-0.5b"),
            (Machine(16 * GB, 8), "qwen2.5-coder-1.5b"),
            (Machine(4 * GB, 8), "qwen2.5-coder-0.5b"),  # larger ones leave no room
            (Machine(64 * GB, 64), "qwen2.5-coder-1.5b"),
            (Machine(64 * GB, 8, gpu_memory=24 * GB), "qwen2.5-coder-7b"),
            (Machine(16 * GB, 8, gpu_memory=4 * GB), "qwen2.5-coder-1.5b"),
            (Machine(16 * GB, 2, gpu_memory=2 * GB), "qwen2.5-coder-0.5b"),
            (Machine(16 * GB, 8, gpu_memory=1 * GB // 2), "qwen2.5-coder-1.5b"),  # by the processor
        ],
    )
    def test_by_memory_and_speed(self, machine: Machine, expected: str) -> None:
        assert recommend(machine).name == expected

    @needs_llama
    def test_the_engine_takes_no_more_cache_than_is_counted(self) -> None:
        from backends.llama_worker.context import EXTRA_BYTES

        assert EXTRA_BYTES == OTHERS

    def test_what_is_recommended_may_be_used_at_work(self) -> None:
        machines = [Machine(m * GB, c, g * GB) for m in (1, 8, 64) for c in (2, 16) for g in (0, 2, 4, 80)]
        assert {recommend(machine).licence for machine in machines} == {"Apache-2.0"}


class TestObserver:
    @pytest.fixture
    def hub(self) -> Iterator[Hub]:
        with Hub() as hub:
            hub.files["me/Models/m.gguf"] = b"GGUF" + bytes(3_000_000)
            yield hub

    def pull(self, hub: Hub, home: Path, **more: str) -> list[list[object]]:
        """What an observer hears, and how long is waited, in a process that has this hub."""
        pytest.importorskip("huggingface_hub")
        code = """
import json
from backends import _hub
from backends.base import BackendError
from backends.model_store import reference_of
heard = []
class Observer:
    def notice(self, key, message, *, warning=True):
        heard.append(["notice", message])
    def progress(self, key, title, fraction, *, done=False):
        heard.append(["done" if done else title, fraction])
try:
    _hub.pull(reference_of("me/Models:m.gguf"), Observer(), wait=lambda seconds: heard.append(["wait", seconds]))
except BackendError as error:
    heard.append(["error", error.kind.value])
print(json.dumps(heard))
"""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        env = {**own, "HF_ENDPOINT": hub.url, "HF_HOME": str(home), "PYTHONPATH": str(ROOT), **more}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        heard = json.loads(done.stdout)
        assert isinstance(heard, list)
        return heard

    def test_progress_grows_and_ends_once(self, hub: Hub, tmp_path: Path) -> None:
        heard = self.pull(hub, tmp_path)
        assert heard[0] == ["Downloading me/Models:m.gguf (3 MB)", 0.0]
        assert heard[-1] == ["done", 1.0]
        fractions = [fraction for _, fraction in heard if isinstance(fraction, float)]
        assert all(earlier <= later for earlier, later in pairwise(fractions))
        assert len(fractions) > 10
        assert [what for what, _ in heard if what == "done"] == ["done"]

    def test_waits_grow_while_nothing_comes(self, hub: Hub, tmp_path: Path) -> None:
        hub.faults = [Fault(after=0), Fault(after=1000), Fault(after=0), Fault(after=0), Fault(after=0)]
        heard = self.pull(hub, tmp_path)
        assert [value for what, value in heard if what == "wait"] == [1.0, 1.0, 2.0, 4.0]
        assert heard[-2:] == [["done", 1.0], ["error", "unreachable"]]

    def test_a_connection_that_says_nothing_more(self, hub: Hub, tmp_path: Path) -> None:
        hub.faults = [Fault(after=1000, hold=True), *[Fault(after=0, hold=True)] * 3]
        heard = self.pull(hub, tmp_path, HF_HUB_DOWNLOAD_TIMEOUT="1")
        assert [value for what, value in heard if what == "wait"] == [1.0, 2.0, 4.0]
        assert heard[-1] == ["error", "timeout"]

    def test_a_file_without_a_checksum(self, hub: Hub, tmp_path: Path) -> None:
        hub.claims["x-linked-etag"] = '"0123456789"'
        heard = self.pull(hub, tmp_path)
        assert heard[-1] == ["notice", f"{hub.url} gives no checksum of m.gguf: it was not checked."]

    def test_a_file_of_unknown_size(self, hub: Hub, tmp_path: Path) -> None:
        hub.claims["x-linked-size"] = ""
        heard = self.pull(hub, tmp_path)
        assert heard[0] == ["Downloading me/Models:m.gguf", None]
        assert {fraction for what, fraction in heard if what != "done"} == {None}
        assert heard[-1] == ["done", 1.0]
