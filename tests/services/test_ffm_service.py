"""The loopback FFM service as other processes use it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

ROOT = Path(__file__).parent.parent.parent
HEADERS = {"X-API-KEY": "test-key"}


def body(inputs: str = "x = <FILL_ME>\n", model: str = "qwen2.5-coder-7b-32k", **more: Any) -> dict[str, Any]:
    return {"model": model, "inputs": inputs, "parameters": {"max_new_tokens": 8}, **more}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    script = tmp_path_factory.mktemp("ffm") / "script.json"
    script.write_text(json.dumps(["first", {"deltas": ["second"], "finish_reason": "length"}]))
    arguments = [sys.executable, "-m", "tests.services.ffm", "--script", str(script)]
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout
        yield process.stdout.readline().strip()
        process.kill()


def test_script_log_and_release_over_http(url: str) -> None:
    root = url.removesuffix("/api")
    with httpx.Client(headers=HEADERS, timeout=20, trust_env=False) as client:
        texts = [client.post(f"{url}/models/text_infilling", json=body()).json() for _ in range(3)]
        assert [(answer["generated_text"], answer["finish_reason"]) for answer in texts] == [
            ("first", "eos_token"),
            ("second", "length"),
            ("second", "length"),
        ]
        assert texts[0]["total_time_taken"] == "0.42 sec"
        log = client.get(f"{root}/__log", params={"answered": 3, "wait": 5}).json()
        assert log["reached"] is True
        assert log["counts"] == {"begun": 3, "generating": 3, "answered": 3, "disconnected": 0}
        assert json.loads(log["requests"][0]["text"]) == body()
        assert log["requests"][0]["headers"]["x-api-key"] == "test-key"
        assert client.get(f"{root}/__log", params={"begun": 4}).json()["reached"] is False

        held = [{"deltas": ["held"], "hold_after": 0}]
        client.post(f"{root}/__script", json=held).raise_for_status()
        with client.stream("POST", f"{url}/models/text_infilling", json=body(stream=True)) as response:
            client.post(f"{root}/__release").raise_for_status()
            assert "held" in response.read().decode()
        client.post(f"{root}/__script", json=held).raise_for_status()
        with client.stream("POST", f"{url}/models/text_infilling", json=body(stream=True)):
            pass
        log = client.get(f"{root}/__log", params={"disconnected": 1, "wait": 5}).json()
        assert log["counts"]["disconnected"] == 1
        assert log["requests"][0]["disconnected"] > log["requests"][0]["begun"]


@pytest.mark.parametrize(
    ("status", "request_body", "headers"),
    [
        (401, body(), {"X-API-KEY": "wrong"}),
        (400, body("x = "), {}),
        (400, body("<FILL_ME><FILL_ME>"), {}),
        (400, body(model="llama3"), {}),
        (422, body(parameters={"temperature": 0}), {}),
        (422, body(parameters={"top_k": 101}), {}),
        (422, body(parameters={"top_p": 0}), {}),
        (422, body(parameters={"max_new_tokens": -1}), {}),
        (422, body(parameters={"frequency_penalty": 1}), {}),
        (422, body(max_new_tokens=1), {}),
    ],
)
def test_what_the_service_refuses(url: str, status: int, request_body: Any, headers: dict[str, str]) -> None:
    with httpx.Client(headers=HEADERS | headers, timeout=20, trust_env=False) as client:
        answer = client.post(f"{url}/models/text_infilling", json=request_body)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_generate_wants_its_header(url: str) -> None:
    with httpx.Client(headers=HEADERS, timeout=20, trust_env=False) as client:
        client.post(f"{url.removesuffix('/api')}/__script", json=["text"]).raise_for_status()
        assert client.post(f"{url}/models/generate", json=body("x")).status_code == 400
        more = {"X-API-HOST": "afs-inference"}
        assert client.post(f"{url}/models/generate", json=body("x"), headers=more).status_code == 200
