"""What the commands do not do: send what must stay here, start what is not needed, say a thing twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp_server.commandline import Done, midfill
from tests.services.ffm import Answer, FfmService

FAR = "http://192.0.2.1/api"  # a network for documents: never reached
WORD = "privacy.allow_remote is false"


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(script=[Answer(deltas=("1",))]) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("x = \n")
    return tmp_path


def entry(folder: Path, name: str, url: str) -> str:
    """A backend whose key command leaves a file behind."""
    script = f"open({str(folder / (name + '.ran'))!r}, 'w').close(); print('test-key')"
    command = json.dumps([sys.executable, "-c", script])
    return f'[backends.{name}]\nkind = "ffm"\nmodel = "codellama-7b"\nurl = "{url}"\nkey_command = {command}\n'


def ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.ran"))


def run(folder: Path, settings: str, *arguments: str, env: dict[str, str] | None = None) -> Done:
    (folder / "c.toml").write_text(settings)
    return midfill(*arguments, "--config", "c.toml", cwd=folder, env=env)


@pytest.mark.parametrize("command", [("doctor",), ("complete", "a.py:1:5")])
@pytest.mark.parametrize("privacy", ["allow_remote = false", 'allow_remote = "no"'])
def test_no_key_is_read_for_a_service_that_is_not_allowed(
    project: Path, command: tuple[str, ...], privacy: str
) -> None:
    done = run(project, f"[privacy]\n{privacy}\n" + entry(project, "work", FAR), *command)
    assert (done.returncode, ran(project)) == (2, [])
    assert "The backend 'work' is remote and privacy.allow_remote is" in done.stdout + done.stderr


def test_the_key_is_not_blamed(project: Path) -> None:
    work = f'[backends.work]\nkind = "ffm"\nmodel = "m"\nurl = "{FAR}"\nkey_env = "NO_SUCH_KEY"\n'
    unset = "[privacy]\nallow_remote = false\n" + work
    for command in (("complete", "a.py:1:5"), ("doctor",)):
        done = run(project, unset, *command)
        assert done.returncode == 2
        assert WORD in done.stdout + done.stderr
        assert "is not set" not in done.stdout + done.stderr


def test_one_of_a_list_may_be_left_out(project: Path, service: FfmService) -> None:
    both = entry(project, "work", FAR) + entry(project, "near", service.url)
    settings = 'backend = ["work", "near"]\n[privacy]\nallow_remote = false\n' + both
    done = run(project, settings, "doctor")
    assert (done.returncode, ran(project)) == (0, ["near"])
    assert f"ok    work: privacy: The backend 'work' is remote and {WORD}" in done.stdout
    service.reset(Answer(deltas=("1",)))
    done = run(project, settings, "complete", "a.py:1:5")
    assert (done.returncode, done.stdout, done.stderr, ran(project)) == (0, "1\n", "", ["near"])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ('[privacy]\nignore = ["a.py"]\n', "ignored-file (it matches `a.py` of privacy.ignore)"),
        ("[languages.python]\nenabled = false\n", "disabled"),
    ],
)
def test_nothing_is_started_for_a_file_that_is_left_alone(
    project: Path, service: FfmService, more: str, reason: str
) -> None:
    done = run(project, more + entry(project, "work", service.url), "complete", "a.py:1:5")
    assert (done.returncode, done.stderr, ran(project)) == (1, f"midfill: no suggestion: {reason}\n", [])
    done = run(project, entry(project, "work", service.url), "complete", "a.py:1:5")
    assert (done.returncode, ran(project)) == (0, ["work"])


@pytest.mark.parametrize(("status", "code"), [(404, 3), (401, 3), (500, 3), (429, 3)])
def test_an_error_is_said_once(project: Path, service: FfmService, status: int, code: int) -> None:
    service.reset(*[Answer(status=status, detail="zanzibar")] * 3)
    done = run(project, entry(project, "work", service.url), "complete", "a.py:1:5")
    assert done.returncode == code
    assert done.stderr.count("zanzibar") == 1
    assert done.stderr.endswith("midfill: no suggestion: backend-error\n")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            '[backends.a]\nkind = "ffm"\nmodel = "m"\nurl = "http://127.0.0.1:9"\nkey_env = "NO_SUCH_KEY"\n',
            "NO_SUCH_KEY is not set",
        ),
        ('[backends.a]\nkind = "llama-cpp"\nmodel_path = "none.gguf"\n', "none.gguf"),
        ('[backends.a]\nkind = "ffm"\nmodel = "m"\n', "url"),
    ],
)
def test_wrong_settings_end_with_2_everywhere(project: Path, settings: str, words: str) -> None:
    for command in (("complete", "a.py:1:5"), ("doctor",), ("models", "path")):
        done = run(project, settings, *command)
        assert done.returncode == 2, command
        assert words in done.stdout + done.stderr or command[0] == "models"
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("complete", "a.py:1:5"), ("doctor",), ("models", "path"), ("serve",), ()])
def test_a_settings_file_that_is_not_there(project: Path, command: tuple[str, ...]) -> None:
    for name, words in (("nope", "nope: there is no such file"), (".", ".: is not a regular file")):
        done = midfill(*command, "--config", name, cwd=project)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"midfill: {words}\n")


def test_models_path_is_about_the_backend_in_use(project: Path) -> None:
    gguf = project / "m.gguf"
    gguf.write_bytes(b"GGUF")
    far, near = entry(project, "work", FAR), '[backends.home]\nkind = "llama-cpp"\nmodel_path = "m.gguf"\n'
    done = run(project, far, "models", "path")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'the backend work is of kind "ffm"' in done.stderr
    done = run(project, 'backend = ["work", "home"]\n' + far + near, "models", "path")
    assert (done.returncode, done.stdout) == (0, f"{gguf}\n")


@pytest.mark.parametrize(
    "settings",
    [
        '[backends.work]\nurl = "http://127.0.0.1:9"\n',
        "[backends.work]\n",
        '[backends.work]\nkind = 3\nurl = "http://127.0.0.1:9"\n',
        "[backends]\nwork = 3\n",
        '[backend.work]\nkind = "ffm"\n',
    ],
)
def test_half_a_backend_is_not_replaced_by_another_one(project: Path, settings: str) -> None:
    """Also where the embedded model is installed."""
    for command in (("complete", "a.py:1:5"), ("doctor",), ("models", "path")):
        done = run(project, settings, *command)
        assert (done.returncode, "backend" in done.stderr + done.stdout) == (2, True), command
        assert "No model is set up" not in done.stdout + done.stderr
        assert "smollm2" not in done.stdout


def test_help_says_the_exit_codes(tmp_path: Path) -> None:
    done = midfill("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.partition("exit codes:\n")[2].split("\n") if line] == [
        "0",
        "1",
        "2",
        "3",
        "130",
    ]
