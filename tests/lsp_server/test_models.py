"""`midfill models list` and `path`, and how progress is shown."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.embedded import embedded_model
from backends.model_table import BY_NAME, EMBEDDED, MODELS
from lsp_server.commands._models_progress import Progress
from tests.llama_child import needs_llama
from tests.lsp_server.commandline import ROOT, environment, midfill
from tests.lsp_server.pulling import CONTENT, FILE, NAME, REPO, Home
from tests.services.hub import COMMIT, Fault, Hub

TABLE = BY_NAME["qwen2.5-coder-1.5b"]


def put(home: Path) -> Path:
    """The table's file, as a pull leaves it."""
    folder = home / "hub" / f"models--{TABLE.repo.replace('/', '--')}"
    path = folder / "snapshots" / COMMIT / TABLE.file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    return path


def env(tmp_path: Path) -> dict[str, str]:
    return {"HF_HUB_CACHE": str(tmp_path / "hub")}


class TestList:
    def test_as_a_table(self, tmp_path: Path) -> None:
        put(tmp_path)
        done = midfill("models", "list", cwd=tmp_path, env=env(tmp_path))
        assert (done.returncode, done.stderr) == (0, "")
        head, *rows = done.stdout.split("\n\n")[0].split("\n")
        assert head.split() == ["name", "size", "memory", "infills", "here", "family", "licence"]
        assert [row.split()[0] for row in rows] == [model.name for model in MODELS]
        columns = {row.split()[0]: row.split() for row in rows}
        assert columns[TABLE.name][1:] == ["1.6", "GB", "2.2", "GB", "yes", "yes", "qwen2.5-coder", "Apache-2.0"]
        assert columns["starcoder2-3b"][6] == "no"
        recommended = done.stdout.split("Recommended: ")[1].split()[0]
        assert recommended in BY_NAME
        here = columns[recommended][6] == "yes"
        assert (f"(midfill models pull {recommended})" in done.stdout) is not here

    def test_as_json(self, tmp_path: Path) -> None:
        path = put(tmp_path)
        done = midfill("models", "list", "--json", cwd=tmp_path, env=env(tmp_path))
        report = json.loads(done.stdout)
        assert report["machine"].keys() == {"memory", "cores", "gpu_memory"}
        assert report["recommended"] in BY_NAME
        models = {each["name"]: each for each in report["models"]}
        assert models[TABLE.name] == {
            "name": TABLE.name,
            "repo": TABLE.repo,
            "file": TABLE.file,
            "size_bytes": TABLE.size,
            "memory_bytes": TABLE.memory,
            "licence": TABLE.licence,
            "family": TABLE.family,
            "infills": True,
            "path": str(path),
        }
        embedded = embedded_model()
        assert models[EMBEDDED.name]["path"] == (str(embedded) if embedded else None)
        assert models[EMBEDDED.name]["repo"] is None
        assert models["mellum-4b"]["path"] is None
        assert report["others"] == []

    def test_files_of_other_programs_are_shown_as_they_can_be_used(self, tmp_path: Path) -> None:
        old, new = (
            tmp_path / "hub" / "models--me--My-Models" / "snapshots" / name / "q4" for name in ("a" * 40, "b" * 40)
        )
        for folder, file in ((old, "m.gguf"), (new, "m.gguf"), (old, "older.gguf"), (new, "config.json")):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(b"GGUF")
        with contextlib.suppress(OSError):  # Windows wants a right for it
            (new / "gone.gguf").symlink_to(new / "nothing")
        os.utime(old.parent, (1, 1))
        names = {"me/My-Models:q4/m.gguf": new / "m.gguf", "me/My-Models:q4/older.gguf": old / "older.gguf"}
        done = midfill("models", "list", "--json", cwd=tmp_path, env=env(tmp_path))
        assert {each["name"]: each["path"] for each in json.loads(done.stdout)["others"]} == {
            name: str(path) for name, path in names.items()
        }
        done = midfill("models", "list", cwd=tmp_path, env=env(tmp_path))
        also = done.stdout.partition("Also here:\n")[2].partition("\n\n")[0]
        assert {line.strip() for line in also.split("\n")} == set(names)
        for name, path in names.items():
            assert midfill("models", "path", name, cwd=tmp_path, env=env(tmp_path)).stdout == f"{path}\n"


class TestPath:
    def test_of_a_name(self, tmp_path: Path) -> None:
        done = midfill("models", "path", TABLE.name, cwd=tmp_path, env=env(tmp_path))
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"midfill: {TABLE.name} is not here. Run `midfill models pull {TABLE.name}`.\n"
        path = put(tmp_path)
        done = midfill("models", "path", TABLE.name, cwd=tmp_path, env=env(tmp_path))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}\n", "")

    def test_of_nothing(self, tmp_path: Path) -> None:
        done = midfill("models", "path", "nothing", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert "There is no model 'nothing'" in done.stderr

    @pytest.mark.skipif(embedded_model() is None, reason="the embedded model is not installed")
    @pytest.mark.parametrize("action", ["path", "pull"])
    def test_of_the_embedded_model(self, tmp_path: Path, action: str) -> None:
        done = midfill("models", action, EMBEDDED.name, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"{embedded_model()}\n")

    def test_of_the_backend_in_use(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").write_text(f'[backends.a]\nkind = "llama-cpp"\nmodel = "{TABLE.name}"\n')
        done = midfill("models", "path", "--config", "a.toml", cwd=tmp_path, env=env(tmp_path))
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Run `midfill models pull {TABLE.name}`." in done.stderr
        path = put(tmp_path)
        done = midfill("models", "path", "--config", "a.toml", cwd=tmp_path, env=env(tmp_path))
        assert (done.returncode, done.stdout) == (0, f"{path}\n")

    def test_a_model_that_is_not_here_is_told_where_it_is_wanted(self, tmp_path: Path) -> None:
        """And nothing is fetched: the hub would be found at a port where nobody is."""
        (tmp_path / "a.toml").write_text(f'[backends.a]\nkind = "llama-cpp"\nmodel = "{TABLE.name}"\n')
        (tmp_path / "a.py").write_text("x = \n")
        own = {**env(tmp_path), "HF_ENDPOINT": "http://127.0.0.1:9"}
        done = midfill("complete", "a.py:1:5", "--config", "a.toml", cwd=tmp_path, env=own)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Run `midfill models pull {TABLE.name}`." in done.stderr
        assert not (tmp_path / "hub").exists()


@needs_llama
@pytest.mark.model
@pytest.mark.skipif(embedded_model() is None, reason="the embedded model is not installed")
def test_a_pulled_model_completes(tmp_path: Path, hub: Hub) -> None:
    """The whole way: a real model comes from the hub, is set by its name, and writes what it writes elsewhere."""
    home, model = Home(tmp_path, hub), embedded_model()
    assert model
    hub.files["me/SmolLM2-GGUF/smollm2-test.gguf"] = model.read_bytes()
    hub.faults = [Fault(after=50_000_000)]
    assert home.pull("me/SmolLM2-GGUF:smollm2-test.gguf").returncode == 0
    settings = 'kind = "llama-cpp"\nmodel = "me/SmolLM2-GGUF:smollm2-test.gguf"\ntimeout_s = 100\n'
    (tmp_path / "a.toml").write_text(f"[backends.a]\n{settings}")
    place = f"{ROOT / 'examples' / 'inventory.py'}:24:26"
    done = midfill("complete", place, "--config", "a.toml", "--explain", cwd=tmp_path, env=home.env())
    assert (done.returncode, done.stdout) == (0, ".price * item.quantity\n"), done.stderr
    assert "Prompt family of the model 'smollm2-test': smollm2" in done.stderr


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.files[f"{REPO}/{FILE}"] = CONTENT
        yield hub


class TestProgress:
    def seen(self, capfd: pytest.CaptureFixture[str]) -> str:
        return capfd.readouterr().err

    def test_lines_where_there_is_no_terminal(self, capfd: pytest.CaptureFixture[str]) -> None:
        now = [0.0]
        shown = Progress(terminal=False, now=lambda: now[0])
        for step in range(1001):
            now[0] = step / 10
            shown.progress("key", "Downloading m", step / 1000)
        shown.progress("key", "Downloading m", 1.0, done=True)
        assert self.seen(capfd).split("\n") == [
            "midfill: Downloading m …",
            "midfill: 25 %, 1:15 left",
            "midfill: 50 %, 0:50 left",
            "midfill: 75 %, 0:25 left",
            "midfill: 100 %",
            "",
        ]

    def test_what_was_here_before_is_no_speed(self, capfd: pytest.CaptureFixture[str]) -> None:
        now = [0.0]
        shown = Progress(terminal=False, now=lambda: now[0])
        for now[0], fraction in ((0.0, 0.0), (5.0, 0.4), (15.0, 0.5), (40.0, 0.75)):
            shown.progress("key", "Downloading m", fraction)
        assert self.seen(capfd).split("\n")[1:] == [
            "midfill: 40 %",
            "midfill: 50 %, 0:50 left",
            "midfill: 75 %, 0:25 left",
            "",
        ]

    def test_a_bar_on_a_terminal(self, capfd: pytest.CaptureFixture[str]) -> None:
        """Redrawn ten times a second, and gone at the end."""
        now = [0.0]
        shown = Progress(terminal=True, now=lambda: now[0])
        shown.progress("key", "Downloading m", 0.0)
        shown.progress("key", "Downloading m", 0.5)
        for step in range(501, 1001):
            now[0] += 0.01
            shown.progress("key", "Downloading m", step / 1000)
        shown.progress("key", "Downloading m", 1.0, done=True)
        first, *drawn = self.seen(capfd).split("\r")
        assert first == "midfill: Downloading m …\n"
        assert drawn[0].startswith("[############............]  50 %")
        assert 45 <= len(drawn) <= 60
        assert max(map(len, drawn)) < 80
        assert drawn[-2].strip() == ""
        assert drawn[-1] == ""

    def test_an_unknown_size(self, capfd: pytest.CaptureFixture[str]) -> None:
        for terminal in (True, False):
            shown = Progress(terminal=terminal)
            for _ in range(10):
                shown.progress("key", "Downloading m", None)
            shown.progress("key", "Downloading m", 1.0, done=True)
            assert self.seen(capfd).strip(" \r\n") == "midfill: Downloading m …"

    @pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
    def test_on_a_real_terminal(self, tmp_path: Path, hub: Hub) -> None:
        import pty

        home = Home(tmp_path, hub)
        hub.faults = [Fault(after=len(CONTENT) // 2)]
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-m", "lsp_server", "models", "pull", NAME],
            cwd=tmp_path,
            env=environment(tmp_path, home.env(COLUMNS="60")),
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        try:
            while data := os.read(ours, 4096):
                shown += data
        except OSError:  # Linux: the other end is closed
            pass
        os.close(ours)
        out, _ = child.communicate(timeout=60)
        assert child.returncode == 0
        assert Path(out.decode().rstrip("\n")).read_bytes() == CONTENT
        text = shown.decode()
        assert "\r[#" in text
        assert " % " in text or " %, " in text
        assert 'done. To use it: kind = "llama-cpp"' in text
