"""The settings for Zed in docs/editors.md: its request, as its source forms it, put to a running gateway."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx

from tests.services.ffm import Answer, FfmService

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "editors.md"
# Whatever the model, Zed sends the markers of all families as stop strings.
STOPS = [
    *("<|endoftext|>", "<|file_separator|>", "<|fim_pad|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"),
    *("<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<PRE>", "<SUF>", "<MID>", "[PREFIX]", "[SUFFIX]"),
]


def test_zed_is_answered(service: FfmService, client: httpx.Client) -> None:
    section = PAGE.read_text(encoding="utf-8").split("### Zed\n")[1]
    found = re.search(r"^```json\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    assert found
    settings = json.loads(found[1])["edit_predictions"]
    assert settings["provider"] == "open_ai_compatible_api"
    zed = settings["open_ai_compatible_api"]
    assert zed["prompt_format"] == "qwen"
    path = httpx.URL(zed["api_url"]).path
    service.reset(Answer(deltas=("a", " + b")))
    body = {
        "model": zed["model"],
        "prompt": "<|fim_prefix|>def add(a, b):\n    return <|fim_suffix|>\n\nadd(1, 2)\n<|fim_middle|>",
        "max_tokens": zed["max_output_tokens"],
        "stop": STOPS,
    }
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["text"] == "a + b"
    assert service.log[0].body["inputs"] == "def add(a, b):\n    return <FILL_ME>\n\nadd(1, 2)\n"
