"""`midfill complete` with a gateway as its backend, of each kind that speaks to one; the embedded model behind it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from backends.base import SilentObserver
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings
from tests.gateway.ffm_clients import CURL, FfmClient
from tests.gateway.gateway_process import ENV, MODEL, GatewayProcess, in_process
from tests.llama_child import needs_llama
from tests.lsp_server.commandline import ROOT, midfill
from tests.services.ffm import Answer, FfmService

KINDS = [("ffm", ""), ("xinference", ""), ("xinference", "code"), ("openai", ""), ("openai", "suffix")]
SOURCE = "def add(a, b):\n    return \n\nprint(add(1, 2))\n"
EXAMPLE, AT, TEXT = "inventory.py", "24:26", ".price * item.quantity"


def settings(kind: str, mode: str, url: str, model: str) -> str:
    path = "/v1" if kind == "openai" else ""
    more = f'mode = "{mode}"\n' if mode else ""
    return (
        f'[backends.team]\nkind = "{kind}"\nurl = "{url}{path}"\nmodel = "{model}"\nkey_env = "GATEWAY_KEY"\n'
        f"timeout_s = 100\n{more}"
    )


@pytest.mark.parametrize(("kind", "mode"), KINDS)
def test_a_service_through_a_gateway(
    home: Path, service: FfmService, gateway: GatewayProcess, kind: str, mode: str
) -> None:
    service.reset(Answer(deltas=("a", " + b")))
    (home / "add.py").write_text(SOURCE)
    (home / "team.toml").write_text(settings(kind, mode, gateway.url, MODEL))
    done = midfill("complete", "add.py:2:12", "--config", "team.toml", "--explain", cwd=home, env=ENV)
    assert (done.returncode, done.stdout) == (0, "a + b\n"), done.stderr
    sent = service.log[-1]
    assert sent.path.endswith("/models/text_infilling")
    assert sent.body["inputs"].endswith("def add(a, b):\n    return <FILL_ME>\n\nprint(add(1, 2))\n")
    assert sent.body["inputs"].count("<FILL_ME>") == 1
    assert "fim_prefix" not in sent.body["inputs"]


@pytest.mark.parametrize("kind", ["ffm", "openai", "xinference"])
def test_other_files_reach_the_service(home: Path, service: FfmService, gateway: GatewayProcess, kind: str) -> None:
    (home / "add.py").write_text(SOURCE)
    (home / "other.py").write_text("OTHER = 1\n")
    (home / "team.toml").write_text(settings(kind, "", gateway.url, "team-model") + 'family = "qwen2.5-coder"\n')
    done = midfill("complete", "add.py:2:12", "--open", "other.py", "--config", "team.toml", cwd=home, env=ENV)
    assert done.returncode == 0, done.stderr
    assert "OTHER = 1" in service.log[-1].body["inputs"]


@pytest.mark.parametrize("kind", ["ffm", "openai", "xinference"])
def test_doctor_finds_that_it_works(home: Path, service: FfmService, gateway: GatewayProcess, kind: str) -> None:
    (home / "team.toml").write_text(settings(kind, "", gateway.url, MODEL))
    done = midfill("doctor", "--config", "team.toml", cwd=home, env=ENV)
    assert done.returncode == 0, done.stdout + done.stderr
    wrong = midfill("doctor", "--config", "team.toml", cwd=home, env={**ENV, "GATEWAY_KEY": "wrong"})
    assert wrong.returncode != 0
    assert "GATEWAY_KEY" in wrong.stdout


# --- the embedded model


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    config = '[backends.local]\nkind = "llama-cpp"\ntimeout_s = 100\n[gateway]\naliases = ["ffm-mixtral"]\n'
    arguments = ("--key-env", "GATEWAY_KEY", "--backend", "local")
    with GatewayProcess(tmp_path_factory.mktemp("local"), config, *arguments) as gateway:
        yield gateway


@pytest.fixture
def embedded(local: GatewayProcess) -> str:
    """The model's name."""
    headers = {"x-api-key": ENV["GATEWAY_KEY"]}
    listed = httpx.get(f"{local.url}/v1/models", headers=headers, trust_env=False, timeout=60).json()
    name = listed["data"][0]["id"]
    assert isinstance(name, str)
    return name


@pytest.mark.model
@needs_llama
@pytest.mark.parametrize(("kind", "mode"), KINDS[:-1])
def test_the_embedded_model_through_a_gateway(
    home: Path, local: GatewayProcess, embedded: str, kind: str, mode: str
) -> None:
    """The same text as without a gateway, though the model does not infill: each kind finds that out."""
    shutil.copy(ROOT / "examples" / EXAMPLE, home / EXAMPLE)
    (home / "team.toml").write_text(settings(kind, mode, local.url, embedded))
    done = midfill("complete", f"{EXAMPLE}:{AT}", "--config", "team.toml", "--explain", cwd=home, env=ENV)
    assert (done.returncode, done.stdout) == (0, f"{TEXT}\n"), done.stderr


@pytest.mark.model
@needs_llama
def test_the_documented_clients_with_the_embedded_model(local: GatewayProcess, embedded: str) -> None:
    ffm = FfmClient(local.url, ENV["GATEWAY_KEY"], "ffm-mixtral", generate=True)
    ffm.parameters |= {"max_new_tokens": 8, "temperature": 0.01}
    prompt = "def add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return"
    whole = ffm.whole(prompt)
    assert whole.startswith(" a - b")
    texts, last = ffm.streamed(prompt)
    assert "".join(texts) == whole
    assert (last["generated_tokens"], last["finish_reason"]) == (8, "length")
    assert last["prompt_tokens"] > 20
    if CURL:
        assert '"generated_text": " a - b' in ffm.curl(prompt)
    ffm.generate = False
    with pytest.raises(AssertionError, match="does not support infilling"):
        ffm.whole("x = <FILL_ME>\n")
    body = {"model": embedded, "mode": "completion", "prompt": prompt, "max_tokens": 8, "temperature": 0}
    headers = {"authorization": f"Bearer {ENV['GATEWAY_KEY']}"}
    url = f"{local.url}/v1/code/completions"
    answer = httpx.post(url, json=body, headers=headers, trust_env=False, timeout=60).json()
    assert answer["choices"][0]["text"].startswith(" a - b")


@pytest.mark.model
@needs_llama
@pytest.mark.parametrize("stream", [False, True])
async def test_the_local_model_goes_idle_when_its_client_leaves(stream: bool) -> None:
    backend = LlamaCppBackend("local", BackendSettings(kind="llama-cpp", timeout_s=100), SilentObserver())
    await backend.prepare()
    process = backend._process
    assert process is not None
    body = {"model": backend.model, "inputs": "def main():\n", "stream": stream, "parameters": {"max_new_tokens": 2000}}
    async with (
        in_process([backend]) as (url, desk),
        httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as client,
    ):
        asking = asyncio.ensure_future(client.post("/models/generate", json=body))
        async with asyncio.timeout(60):
            while process.idle.is_set():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
            await process.idle.wait()  # 2000 tokens take ten seconds and more
        assert asking.cancelled()
        assert desk.turnstile.inside == 0
        quick = {**body, "stream": False, "parameters": {"max_new_tokens": 2}}
        assert (await client.post("/models/generate", json=quick)).json()["generated_tokens"] == 2
    await backend.aclose()
