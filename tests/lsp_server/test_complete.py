"""`midfill complete` against the real loopback service, and with the embedded model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp_server.commandline import INTERRUPTIBLE, Done, environment, midfill
from tests.services.ffm import Answer, FfmService

SOURCE = "def add(a, b):\r\n    return \r\n\r\nprint(add(1, 2))\r\n"
ENV = {"WORK_KEY": "test-key"}


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(script=[Answer(deltas=("a", " + b"))]) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, service: FfmService) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "add.py").write_bytes(SOURCE.encode())
    (tmp_path / "work.toml").write_text(
        f'[backends.work]\nkind = "ffm"\nurl = "{service.url}"\nmodel = "qwen2.5-coder-7b-32k"\nkey_env = "WORK_KEY"\n'
    )
    return tmp_path


def complete(project: Path, *more: str, env: dict[str, str] | None = None) -> Done:
    return midfill("complete", "add.py:2:12", "--config", "work.toml", *more, cwd=project, env=ENV | (env or {}))


def test_the_text_alone_is_printed(project: Path, service: FfmService) -> None:
    done = complete(project)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a + b\n", "")
    sent = service.log[0]
    assert sent.path.endswith("/models/text_infilling")
    assert "def add(a, b):\\n    return <FILL_ME>" in sent.text


def test_json(project: Path) -> None:
    done = complete(project, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    place = {"line": 2, "column": 12}
    assert (answer["text"], answer["reason"], answer["range"]) == ("a + b", None, {"start": place, "end": place})
    assert (answer["trace"]["reason"], answer["trace"]["shape"]) == ("shown", "infill")
    assert "prompt" not in answer["trace"]


def test_explain_and_stream_go_to_stderr(project: Path) -> None:
    done = complete(project, "--explain", "--stream")
    assert (done.returncode, done.stdout) == (0, "a + b\n")
    lines = done.stderr.split("\n")
    assert "a + b" in lines
    assert "midfill: prompt: shape infill, family qwen2.5-coder" in lines
    assert any(line.startswith("midfill: tokens: prompt_tokens 21") for line in lines)
    times = next(line for line in lines if line.startswith("midfill: times: "))
    marks = ["debounced", "dispatched", "first_delta", "last_delta", "answered"]
    assert re.findall(r"(\w+) \d+\.\d+", times) == marks, times
    assert "midfill: reason shown, cache miss" in lines


def test_explain_shows_what_was_sent_and_why(project: Path, service: FfmService) -> None:
    secret = "ghp_" + "A1b2C3d4E5" * 3
    (project / "other.py").write_text(f'KEY = "{secret}"\nOTHER = 1\n')
    (project / ".gitignore").write_text("# generated\ngen_*\n")
    (project / "gen_a.py").write_text("HIDDEN = 1\n")
    done = complete(project, "--explain", "--open", "other.py", "--open", "gen_a.py")
    lines = done.stderr.split("\n")
    assert "midfill: gen_a.py is not shown to the model: it matches `gen_*`, line 2 of .gitignore" in lines
    assert any(
        re.fullmatch(r"midfill: sent: add\.py lines 1 to 4; source window, score 1\.00, about \d+ tokens", line)
        for line in lines
    )
    assert any(line.startswith("midfill: sent: other.py lines 1 to 2; source ") for line in lines)
    begin = lines.index("midfill: the prompt as it was formed, up to the next line of midfill:")
    shown = "\n".join(lines[begin + 1 : lines.index("midfill: end of the prompt")])
    assert "def add(a, b):\n    return [hole]" in shown
    assert secret in shown, "a service on this machine sees it"
    assert secret in service.log[0].text
    assert "HIDDEN" not in done.stderr + service.log[0].text


def test_open_files_are_shown_to_the_model_but_for_ignored_ones(project: Path, service: FfmService) -> None:
    (project / "other.py").write_text("OTHER = 1\n")
    (project / ".env").write_text("HIDDEN=1\n")
    assert complete(project, "--open", "other.py", "--open", ".env").stdout == "a + b\n"
    assert "OTHER" in service.log[0].text
    assert "HIDDEN" not in service.log[0].text


def test_no_suggestion(project: Path, service: FfmService) -> None:
    service.reset(Answer(deltas=("  ",)))
    done = complete(project)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("midfill: no suggestion: empty")
    service.reset(Answer(deltas=("  ",)))
    done = complete(project, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["text"], answer["range"], answer["reason"]) == (1, None, None, "empty")


def test_a_backend_failure(project: Path, service: FfmService) -> None:
    service.reset(Answer(status=429, detail="quota"))
    done = complete(project)
    assert (done.returncode, done.stdout) == (3, "")
    assert "midfill: no suggestion: backend-error" in done.stderr


def test_several_backends(project: Path, service: FfmService) -> None:
    with FfmService() as gone:
        down = f'[backends.down]\nkind = "ffm"\nurl = "{gone.url}"\nmodel = "codellama-7b"\n'
    with (project / "work.toml").open("a") as file:
        file.write(down)
    done = complete(project, "--backend", "down,work", "--explain")
    assert (done.returncode, done.stdout) == (0, "a + b\n")
    assert "midfill: backend: work (failed: down:unreachable)" in done.stderr.split("\n")
    assert "cannot be reached" in done.stderr
    assert "Until it answers again, the backend work is asked." in done.stderr
    done = complete(project, "--backend", "down,wrk")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'backend: "wrk" is not one of "work", "down"' in done.stderr
    done = complete(project, "--backend", "down")
    assert (done.returncode, done.stdout) == (3, "")


def test_a_missing_key(project: Path, service: FfmService) -> None:
    done = complete(project, env={"WORK_KEY": ""})
    assert (done.returncode, done.stdout, service.log) == (2, "", [])
    assert "The environment variable WORK_KEY is not set" in done.stderr


def test_privacy_forbids_the_service(project: Path, service: FfmService) -> None:
    """A service on this machine is not remote; one on a network that is for documents only is."""
    no_remote = {"MIDFILL_PRIVACY__ALLOW_REMOTE": "false"}
    assert complete(project, env=no_remote).returncode == 0
    service.reset()
    done = complete(project, env={**no_remote, "MIDFILL_BACKENDS__WORK__URL": "http://192.0.2.1/api"})
    assert (done.returncode, done.stdout, service.log) == (2, "", [])
    assert "no suggestion: no-backend" in done.stderr


def test_the_project_file_counts_and_cannot_redirect(project: Path, service: FfmService) -> None:
    (project / ".midfill.toml").write_text(
        '[backends.work]\nurl = "http://127.0.0.1:9/"\n[languages.python]\nenabled = false\n'
    )
    done = complete(project)
    assert (done.returncode, service.log) == (1, [])
    assert "a project file may hold only" in done.stderr
    assert "no suggestion: disabled" in done.stderr
    (project / ".midfill.toml").write_text('[backends.work]\nurl = "http://127.0.0.1:9/"\n')
    assert complete(project).stdout == "a + b\n"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_interrupt(project: Path, service: FfmService) -> None:
    service.reset(Answer(deltas=("a", "b"), hold_after=1))
    process = subprocess.Popen(
        [*INTERRUPTIBLE, "complete", "add.py:2:12", "--config", "work.toml", "--stream"],
        cwd=project,
        env=environment(project, ENV),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.read(1) == b"a"  # the answer has begun
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_closed_pipe_is_no_error(project: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "lsp_server", "complete", "add.py:2:12", "--config", "work.toml"]
    try:
        done = subprocess.run(
            command, cwd=project, env=environment(project, ENV), stdout=theirs, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.model
def test_the_embedded_model_completes(tmp_path: Path) -> None:
    """Nothing configured; the place in the README."""
    example = Path(__file__).resolve().parent.parent.parent / "examples" / "inventory.py"
    patient = {"MIDFILL_BACKENDS__LOCAL__TIMEOUT_S": "100"}  # many tests at once on two cores
    done = midfill("complete", f"{example}:24:26", "--explain", cwd=tmp_path, env=patient)
    assert (done.returncode, done.stdout) == (0, ".price * item.quantity\n"), done.stderr
    assert "midfill: prompt: shape raw, family smollm2" in done.stderr


def test_a_notebook_is_asked_and_shown_as_its_code(project: Path, service: FfmService) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [{"text": ["CANARY"]}], "source": ["x = 1\n", "y = "]}
    (project / "a.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}}, indent=1), encoding="utf-8")
    lines = (project / "a.ipynb").read_text(encoding="utf-8").split("\n")
    line = next(number for number, text in enumerate(lines) if '"y = "' in text)
    place = f"a.ipynb:{line + 1}:{lines[line].index('y = ') + 5}"
    done = midfill("complete", place, "--config", "work.toml", cwd=project, env=ENV)
    assert (done.returncode, done.stdout) == (0, "a + b\n"), done.stderr
    assert service.log[-1].body["inputs"] == "# %%\nx = 1\ny = <FILL_ME>\n\n"
    assert complete(project, "--open", "a.ipynb").returncode == 0
    assert "# %%\nx = 1\ny =" in service.log[-1].body["inputs"]
    assert "CANARY" not in service.log[-1].text
    elsewhere = midfill("complete", "a.ipynb:1:1", "--config", "work.toml", cwd=project, env=ENV)
    assert (elsewhere.returncode, elsewhere.stdout) == (1, "")
    assert "outside-code" in elsewhere.stderr
