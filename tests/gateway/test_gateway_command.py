"""The command line of `midfill gateway`, and what may import an HTTP server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from lsp_server.gateway.serving import listen
from tests.gateway.gateway_process import ENV, MODEL, GatewayProcess, work
from tests.lsp_server.commandline import ROOT, Done, environment, midfill
from tests.services.ffm import Answer, FfmService
from tests.test_architecture import PACKAGES, imported_modules, sources

SERVERS = {"starlette", "uvicorn", "sse_starlette", "anyio"}


def gateway(folder: Path, *arguments: str, config: str = "") -> Done:
    (folder / "gateway.toml").write_text(config or work("http://127.0.0.1:9"))
    return midfill("gateway", "--config", "gateway.toml", *arguments, cwd=folder, env=ENV)


def test_http_servers_are_imported_in_the_gateway_only() -> None:
    using = {path for path in sources(*PACKAGES) if {name.split(".")[0] for name in imported_modules(path)} & SERVERS}
    bench = ROOT / "lsp_server" / "bench" / "service.py"  # a service beside the server that is measured
    assert {path.parent for path in using - {bench}} == {ROOT / "lsp_server" / "gateway"}
    assert ROOT / "lsp_server" / "gateway" / "settings.py" not in using  # every settings file is read with it


@pytest.mark.parametrize("name", ["starlette", "uvicorn", "sse_starlette"])
def test_a_missing_package_is_told_with_what_to_do(tmp_path: Path, name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; from lsp_server.cli import run; sys.exit(run(['gateway']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("midfill: the gateway needs the extra")
    assert 'pip install ".[gateway]"' in done.stderr
    assert name in done.stderr


@pytest.mark.parametrize("port", ["65536", "-1", "x", "1.5"])
def test_what_is_no_port(tmp_path: Path, port: str) -> None:
    assert gateway(tmp_path, "--port", port).returncode == 2


def test_a_port_in_use(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        done = gateway(tmp_path, "--port", str(port))
    assert done.returncode == 2
    assert f"cannot listen at 127.0.0.1 port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_that_are_of_no_use(tmp_path: Path) -> None:
    done = gateway(tmp_path, "--backend", "wrk")
    assert (done.returncode, '"wrk" is not one of "work"' in done.stderr) == (2, True)
    done = gateway(tmp_path, config='[backends.a]\nkind = "nope"\n')
    assert (done.returncode, "there is no backend to serve" in done.stderr) == (2, True)
    done = gateway(tmp_path, config=work("http://192.0.2.1/api", "[privacy]\nallow_remote = false\n"))
    assert (done.returncode, "there is no backend to serve" in done.stderr) == (2, True)
    done = midfill("gateway", "--config", "none.toml", cwd=tmp_path)
    assert (done.returncode, "none.toml: there is no such file" in done.stderr) == (2, True)
    (tmp_path / "gateway.toml").write_text(work("http://127.0.0.1:9"))
    done = midfill("gateway", "--config", "gateway.toml", "--port", "0", cwd=tmp_path)
    assert (done.returncode, "WORK_KEY is not set" in done.stderr) == (2, True)


def test_the_log_tells_routes_but_no_queries_bodies_or_keys(tmp_path: Path, own_service: FfmService) -> None:
    log = tmp_path / "gateway.log"
    own_service.reset(Answer(status=401, detail="SERVICE-WORDS"))
    arguments = ("--log-file", str(log), "--key-env", "MIDFILL_GATE")
    env = {**ENV, "MIDFILL_GATE": "gateway-secret"}
    with GatewayProcess(tmp_path, work(own_service.url), *arguments, env=env) as running:
        headers = {"x-api-key": "gateway-secret"}
        body = {"model": MODEL, "inputs": "SOURCE-TEXT <FILL_ME>"}
        with httpx.Client(base_url=running.url, headers=headers, trust_env=False) as client:
            assert client.post("/models/text_infilling?QUERY=1", json=body).status_code == 502
            assert client.get("/SECRET-PATH").status_code == 404
            assert client.get("/health").status_code == 200
    assert running.log.startswith("midfill: serving ")
    assert running.log.count("\n") == 1  # MIDFILL_GATE is not taken for a setting
    written = log.read_text()
    assert "POST /models/text_infilling 502" in written
    assert "backend work: auth: " in written
    assert "GET (unknown path) 404" in written
    for hidden in ("QUERY", "SOURCE-TEXT", "SECRET-PATH", "gateway-secret", "test-key"):
        assert hidden not in written


def test_a_project_file_changes_nothing(tmp_path: Path, own_service: FfmService) -> None:
    (tmp_path / ".midfill.toml").write_text('[completion]\nmax_tokens = 7\n[gateway]\naliases = ["mine"]\n')
    with GatewayProcess(tmp_path, work(own_service.url)) as running:
        body = {"model": MODEL, "prompt": "a"}
        httpx.post(f"{running.url}/v1/code/completions", json=body, trust_env=False).raise_for_status()
    assert own_service.log[0].body["parameters"]["max_new_tokens"] == 128
    assert "mine" not in running.log


def test_the_next_backend_answers_where_one_fails(tmp_path: Path, own_service: FfmService) -> None:
    with FfmService() as gone:
        down = f'[backends.down]\nkind = "ffm"\nurl = "{gone.url}"\nmodel = "codellama-7b"\nkey_env = "WORK_KEY"\n'
    with GatewayProcess(tmp_path, work(own_service.url, down), "--backend", "down,work") as running:
        for model, status in (("codellama-7b", 200), (MODEL, 200), ("down", 404)):
            body = {"model": model, "inputs": "x = <FILL_ME>"}
            response = httpx.post(f"{running.url}/models/text_infilling", json=body, trust_env=False)
            assert response.status_code == status
    assert [seen.body["model"] for seen in own_service.log] == [MODEL, MODEL]
    assert running.log.count("backend down: unreachable") == 1  # the second request begins at the model it names
