from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp_server.commandline import ROOT, midfill
from tests.services.ffm import FfmService

KEY = "test-key"


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(key=KEY) as running:
        yield running


def configured(folder: Path, url: str, more: str = "") -> str:
    file = folder / "work.toml"
    file.write_text(
        f'[backends.work]\nkind = "ffm"\nurl = "{url}"\nmodel = "qwen2.5-coder-7b-32k"\nkey_env = "WORK_KEY"\n{more}'
    )
    return str(file)


def test_all_is_well(tmp_path: Path, service: FfmService) -> None:
    file = configured(tmp_path, service.url)
    done = midfill("doctor", "--config", file, cwd=tmp_path, env={"WORK_KEY": KEY})
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"read  {file}" in done.stdout
    assert f"none  {tmp_path.resolve() / '.midfill.toml'}" in done.stdout
    assert f"host: 127.0.0.1:{service.port}" in done.stdout
    assert f"set   backends.work.key_env ({file})" in done.stdout
    assert "ok    key: from environment variable WORK_KEY" in done.stdout
    assert "FAIL" not in done.stdout
    assert "family" not in done.stdout  # the service forms the prompt
    assert KEY not in done.stdout + done.stderr


def test_as_json(tmp_path: Path, service: FfmService) -> None:
    file = configured(tmp_path, service.url)
    done = midfill("doctor", "--json", "--config", file, cwd=tmp_path, env={"WORK_KEY": KEY})
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["problems"]) == (0, True, [])
    assert report["files"][0] == {"path": file, "exists": True}
    assert report["backend"]["name"] == "work"
    assert {check["name"] for check in report["checks"]} >= {"key", "infill", "request"}
    assert all(check["ok"] for check in report["checks"])


def test_settings_that_are_wrong_end_with_2(tmp_path: Path, service: FfmService) -> None:
    file = configured(tmp_path, service.url, "timeout_s = -1\napi_key = 'hunter2'\n")
    done = midfill("doctor", "--config", file, cwd=tmp_path, env={"WORK_KEY": KEY})
    assert done.returncode == 2
    assert "FAIL  backends.work.timeout_s: -1 is not a number from 0.1 to 600" in done.stdout
    assert "FAIL  backends.work.api_key: a key does not belong in settings" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert "ok    request" in done.stdout


@pytest.mark.parametrize(
    ("key", "code", "words"),
    [("wrong-key", 3, "FAIL  request"), ("", 2, "FAIL  key: The environment variable WORK_KEY is not set")],
)
def test_a_backend_that_fails(tmp_path: Path, service: FfmService, key: str, code: int, words: str) -> None:
    done = midfill("doctor", "--config", configured(tmp_path, service.url), cwd=tmp_path, env={"WORK_KEY": key})
    assert done.returncode == code
    assert words in done.stdout
    assert "wrong-key" not in done.stdout + done.stderr


def test_no_service_there(tmp_path: Path) -> None:
    with FfmService() as gone:
        url = gone.url
    done = midfill("doctor", "--json", "--config", configured(tmp_path, url), cwd=tmp_path, env={"WORK_KEY": KEY})
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"]) == (3, False)
    assert [check["name"] for check in report["checks"] if not check["ok"]] == ["request"]


def test_all_backends_of_a_list_are_asked(tmp_path: Path, service: FfmService) -> None:
    with FfmService() as gone:
        down = f'[backends.down]\nkind = "ffm"\nurl = "{gone.url}"\nmodel = "m"\n'
    file = tmp_path / "list.toml"
    text = Path(configured(tmp_path, service.url)).read_text()
    file.write_text('backend = ["work", "down"]\n' + text + down)
    done = midfill("doctor", "--config", str(file), cwd=tmp_path, env={"WORK_KEY": KEY})
    assert done.returncode == 3
    assert "ok    work: request: " in done.stdout
    assert "FAIL  down: request: " in done.stdout
    assert done.stdout.rstrip().endswith("Suggestions can be had. What is marked FAIL is missing or left out.")
    done = midfill("doctor", "--json", "--config", str(file), cwd=tmp_path, env={"WORK_KEY": KEY})
    report = json.loads(done.stdout)
    assert [backend["name"] for backend in report["backends"]] == ["work", "down"]
    assert report["backend"] == report["backends"][0]


def test_a_kind_that_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[backends.a]\nkind = "nope"\n')
    done = midfill("doctor", "--config", "a.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "FAIL  backend: backends.a.kind is 'nope'; allowed: ffm" in done.stdout


def test_nothing_configured_says_how_to_go_on(tmp_path: Path) -> None:
    """Without the extra: the finder is told that llama_cpp is not there."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['llama_cpp'] = None\n")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    done = midfill("doctor", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "FAIL  backend: No model is set up. There are two ways to go on:" in done.stdout
    assert "[backends.work]" in done.stdout


@pytest.mark.model
def test_the_embedded_model_works(tmp_path: Path) -> None:
    done = midfill("doctor", "--json", cwd=tmp_path, env={"MIDFILL_BACKENDS__LOCAL__TIMEOUT_S": "100"})
    report = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (report["backend"]["kind"], report["backend"]["model"]) == ("llama-cpp", "smollm2-135m")
    build = next(check for check in report["checks"] if check["name"] == "llama.cpp")
    assert build["ok"]
    assert build["detail"].startswith("llama-cpp-python ")
    assert "midfill: Loading smollm2-135m" in done.stderr
    path = midfill("models", "path", cwd=tmp_path)
    assert path.returncode == 0
    assert Path(path.stdout.strip()).read_bytes()[:4] == b"GGUF"


@pytest.mark.model
def test_a_local_model_behind_a_service_that_is_down(tmp_path: Path) -> None:
    with FfmService() as gone:
        down = f'[backends.down]\nkind = "ffm"\nurl = "{gone.url}"\nmodel = "m"\n'
    (tmp_path / "a.toml").write_text(f'backend = ["down", "local"]\n{down}[backends.local]\ntimeout_s = 100\n')
    done = midfill("doctor", "--config", "a.toml", cwd=tmp_path)
    assert done.returncode == 3
    assert "ok    local: speed: " in done.stdout
    assert done.stdout.rstrip().endswith("Suggestions can be had. What is marked FAIL is missing or left out.")


def test_a_local_model_that_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[backends.a]\nkind = "llama-cpp"\nmodel = "mellum-4b"\n')
    env = {"HF_HUB_CACHE": str(tmp_path / "hub")}
    done = midfill("doctor", "--config", "a.toml", cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert "  model: mellum-4b\n" in done.stdout
    assert "FAIL  model: The model mellum-4b is not here. Run `midfill models pull mellum-4b`." in done.stdout


def test_values_are_shown_but_for_secrets(tmp_path: Path, service: FfmService) -> None:
    more = (
        'headers = {X = "hidden-1"}\nparameters = {p = "hidden-2"}\nproxy = "http://user:hidden-3@127.0.0.1:9"\n'
        'key_command = ["hidden-4"]\n[backends.b]\nkind = "ffm"\nurl = "https://x/?token=hidden-5"\n'
        '[privacy]\nignore = ["a"]\n[completion]\nmax_lines = 5\n'
    )
    file = configured(tmp_path, service.url, more)
    (tmp_path / ".midfill.toml").write_text('[privacy]\nignore = ["b"]\n')
    env = {"WORK_KEY": KEY, "MIDFILL_BACKEND": "work"}
    text = midfill("doctor", "--config", file, cwd=tmp_path, env=env)
    for line in (
        f"set   completion.max_lines = 5 ({file})",
        'set   backend = ["work"] (environment variable MIDFILL_BACKEND)',
        'set   privacy.ignore = ["a", "b"] (',
        f"set   backends.work.headers ({file})",
        'set   backends.work.proxy = "http://…@127.0.0.1:9" (',
        'set   backends.b.url = "https://x/?…" (',
    ):
        assert line in text.stdout
    report = midfill("doctor", "--json", "--config", file, cwd=tmp_path, env=env)
    values = json.loads(report.stdout)["values"]
    assert (values["completion.max_lines"], values["privacy.ignore"]) == (5, ["a", "b"])
    assert values["backends.work.headers"] is values["backends.work.key_command"] is None
    for done in (text, report):
        assert "hidden" not in done.stdout + done.stderr
        assert KEY not in done.stdout + done.stderr
