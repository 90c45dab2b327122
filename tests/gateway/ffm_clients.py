"""Clients of FFM that ask and read records in the way the service's documents show."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

import requests

CURL = shutil.which("curl")
PARAMETERS: dict[str, Any] = {
    "max_new_tokens": 43,
    "temperature": 0.1,
    "top_k": 50,
    "top_p": 1.0,
    "frequence_penalty": 1.0,
}


@dataclass
class FfmClient:
    url: str
    key: str
    model: str
    generate: bool = False
    parameters: dict[str, Any] = field(default_factory=lambda: dict(PARAMETERS))

    @property
    def path(self) -> str:
        return self.url + ("/models/generate" if self.generate else "/models/text_infilling")

    @property
    def headers(self) -> dict[str, str]:
        headers = {"content-type": "application/json", "X-API-Key": self.key}
        return {**headers, "X-API-Host": "afs-inference"} if self.generate else headers

    def body(self, inputs: str, **more: Any) -> dict[str, Any]:
        return {"model": self.model, "inputs": inputs, "parameters": self.parameters, **more}

    def whole(self, inputs: str) -> str:
        response = requests.post(self.path, json=self.body(inputs), headers=self.headers, timeout=60)
        assert response.status_code == 200, response.text
        text = json.loads(response.text, strict=False)["generated_text"]
        assert isinstance(text, str)
        return text

    def streamed(self, inputs: str) -> tuple[list[str], dict[str, Any]]:
        """The texts, and the record that ended them: the final one, or an error."""
        messages: list[str] = []
        body = self.body(inputs, stream=True)
        with requests.post(self.path, json=body, headers=self.headers, stream=True, timeout=60) as response:
            assert response.status_code == 200, response.text
            for line in response.iter_lines():
                chunk = line.decode("utf-8")
                if chunk == "":
                    continue
                try:  # pings are not JSON
                    record = json.loads(chunk[5:], strict=False)
                except ValueError:
                    continue
                if "status_code" in record:
                    return messages, record
                messages.append(record["generated_text"])
                ended = record["total_time_taken"] is not None
                if record["finish_reason"] is not None or (self.generate and ended):
                    return messages, record
        raise AssertionError("the stream has no final record")

    def curl(self, inputs: str, *, stream: bool = False) -> str:
        """What curl prints."""
        assert CURL
        body = json.dumps(self.body(inputs, **({"stream": True} if stream else {})))
        headers = ["-H", f"X-API-KEY:{self.key}", "-H", "content-type: application/json"]
        if self.generate:
            headers += ["-H", "X-API-HOST: afs-inference"]
        done = subprocess.run(
            [CURL, "--noproxy", "*", "-sS", self.path, *headers, "-d", body],
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout
