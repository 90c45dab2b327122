"""OpenAI's and Xinference's routes of a running gateway."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.gateway.gateway_process import MODEL
from tests.services.ffm import Answer, FfmService

QUICK_SORT = {
    "prompt": "def quick_sort(arr):\n    if len(arr) <= 1:\n        return arr\n    pivot = arr[0]\n",
    "suffix": "\n    return quick_sort(left) + [pivot] + quick_sort(right)",
}
LEFT = ("    left, right", " = [], []\n", "    for item in arr[1:]:")


def post(client: httpx.Client, path: str, **body: Any) -> httpx.Response:
    return client.post(path, json={"model": MODEL, **body})


def events(response: httpx.Response) -> list[str]:
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = response.text.split("\n\n")
    assert blocks.pop() == ""
    assert all(block.startswith("data: ") for block in blocks)
    return [block.removeprefix("data: ") for block in blocks]


# --- OpenAI


def test_completions_with_a_suffix(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=LEFT))
    answer = post(client, "/v1/completions", **QUICK_SORT, max_tokens=50, temperature=0.2, stop=["zzz"]).json()
    assert answer["id"].startswith("cmpl-")
    assert (answer["object"], answer["model"]) == ("text_completion", MODEL)
    assert answer["choices"] == [{"text": "".join(LEFT), "index": 0, "logprobs": None, "finish_reason": "stop"}]
    assert answer["usage"] == {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24}
    sent = service.log[0].body
    assert sent["inputs"] == QUICK_SORT["prompt"] + "<FILL_ME>" + QUICK_SORT["suffix"]
    assert (sent["parameters"]["max_new_tokens"], sent["parameters"]["temperature"]) == (50, 0.2)
    assert sent["parameters"]["stop_sequences"][0] == "zzz"


def test_completions_without_a_suffix_and_sixteen_tokens(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=("x", " = 1"), finish_reason="length"))
    answer = post(client, "/v1/completions", prompt=["# one\n"]).json()
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == ("x = 1", "length")
    assert service.log[0].body["parameters"]["max_new_tokens"] == 16


def test_completions_streamed(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=LEFT))
    *records, done = events(post(client, "/v1/completions", **QUICK_SORT, stream=True))
    chunks = [json.loads(record) for record in records]
    assert done == "[DONE]"
    assert [chunk["choices"][0]["text"] for chunk in chunks] == list(LEFT)
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert [chunk.get("usage", {}).get("total_tokens") for chunk in chunks] == [None, None, 24]


def test_usage_in_a_chunk_of_its_own(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=LEFT))
    wish = {"stream": True, "stream_options": {"include_usage": True}}
    *records, done = events(post(client, "/v1/completions", **QUICK_SORT, **wish))
    chunks = [json.loads(record) for record in records]
    assert done == "[DONE]"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 3)
    assert not any("usage" in chunk for chunk in chunks[:-1])


def test_a_stop_string_ends_the_answer_and_is_left_out(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=("one\n", "two E", "N", "D three")))
    *records, _ = events(post(client, "/v1/completions", **QUICK_SORT, stream=True, stop="END", max_tokens=9))
    chunks = [json.loads(record) for record in records]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == "one\ntwo "
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["completion_tokens"] > 0  # guessed: the backend was not heard to its end


def test_a_template_is_taken_for_what_it_means(service: FfmService, client: httpx.Client) -> None:
    """What `/v1/code/prompt` shows goes to `/v1/completions`; the service infills by fields of its own."""
    prompt = post(client, "/v1/code/prompt", mode="infill", **QUICK_SORT).json()["prompt"]
    expected = f"<|fim_prefix|>{QUICK_SORT['prompt']}<|fim_suffix|>{QUICK_SORT['suffix']}<|fim_middle|>"
    assert prompt == expected
    assert service.log == []  # nothing was generated
    post(client, "/v1/completions", prompt=prompt).raise_for_status()
    assert service.log[0].body["inputs"] == QUICK_SORT["prompt"] + "<FILL_ME>" + QUICK_SORT["suffix"]


def test_sampling_is_passed_on(service: FfmService, client: httpx.Client) -> None:
    """In FFM's names and ranges; what FFM does not know is left out."""
    known = {"temperature": 0.25, "top_p": 0, "top_k": 200, "repetition_penalty": 1.1}
    unknown = {"seed": 7, "frequency_penalty": -2, "presence_penalty": 2}
    for path in ("/v1/completions", "/v1/code/completions"):
        post(client, path, prompt="a", **known, **unknown).raise_for_status()
        sent = service.log[-1].body["parameters"]
        assert {name: sent[name] for name in ("temperature", "top_p", "top_k", "frequence_penalty")} == {
            "temperature": 0.25,
            "top_p": 0.01,
            "top_k": 100,
            "frequence_penalty": 1.1,
        }
        assert not sent.keys() & unknown.keys()
    post(client, "/v1/completions", prompt="a", top_k=-1, seed=-1).raise_for_status()
    assert not service.log[-1].body["parameters"].keys() & {"top_k", "top_p", "frequence_penalty"}


def test_models_and_health(client: httpx.Client) -> None:
    listed = client.get("/v1/models").json()
    assert listed["object"] == "list"
    assert [entry["id"] for entry in listed["data"]] == [MODEL, "team-model"]
    assert client.get("/health", headers={"authorization": ""}).json() == {"status": "ok"}


# --- Xinference


def test_code_completion(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=("def quick_sort", "(arr):")))
    answer = post(client, "/v1/code/completions", mode="completion", prompt="#write a quick sort algorithm").json()
    assert answer["choices"][0]["text"] == "def quick_sort(arr):"
    assert answer["usage"]["completion_tokens"] == 2
    assert service.log[0].body["parameters"]["max_new_tokens"] == 128  # as long as a suggestion


def test_code_completion_with_files(service: FfmService, client: httpx.Client) -> None:
    files = {"test.py": "test file content", "main.py": "main file content"}
    body = {
        "mode": "completion",
        "prompt": "#write a quick sort algorithm",
        "files": files,
        "repo_name": "my-test-repo",
    }
    shown = post(client, "/v1/code/prompt", **body).json()["prompt"]
    assert shown == (
        "<|repo_name|>my-test-repo\n<|file_sep|>test.py\ntest file content\n<|file_sep|>main.py\nmain file content\n"
        "<|file_sep|>untitled\n#write a quick sort algorithm"
    )
    assert post(client, "/v1/code/completions", **body).json()["choices"][0]["text"] == "return a + b"
    sent = service.log[0].body["inputs"]
    assert sent.index("test file content") < sent.index("main file content") < sent.index("#write a quick sort")


def test_code_infill(service: FfmService, client: httpx.Client) -> None:
    service.reset(Answer(deltas=LEFT))
    answer = post(client, "/v1/code/completions", mode="infill", stream=True, **QUICK_SORT).json()  # whole all the same
    assert answer["choices"][0]["text"] == "".join(LEFT)
    assert service.log[0].body["inputs"] == QUICK_SORT["prompt"] + "<FILL_ME>" + QUICK_SORT["suffix"]


def test_the_mode_is_completion_if_none_is_said(service: FfmService, client: httpx.Client) -> None:
    post(client, "/v1/code/completions", prompt="a = ", suffix="not used").raise_for_status()
    assert "not used" not in service.log[0].body["inputs"]


# --- errors


def error(response: httpx.Response) -> tuple[int, Any]:
    return response.status_code, response.json()["error"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": "a", "model": None}, "model"),
        ({"prompt": "a", "suffix": 1}, "suffix"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "a", "max_tokens": "9"}, "max_tokens"),
        ({"prompt": "a", "max_tokens": True}, "max_tokens"),
        ({"prompt": "a", "temperature": 2.1}, "temperature"),
        ({"prompt": "a", "top_p": 1.5}, "top_p"),
        ({"prompt": "a", "top_k": -2}, "top_k"),
        ({"prompt": "a", "seed": 1.5}, "seed"),
        ({"prompt": "a", "seed": 2**63}, "seed"),
        ({"prompt": "a", "presence_penalty": -2.5}, "presence_penalty"),
        ({"prompt": "a", "n": 2}, "n"),
        ({"prompt": "a", "echo": True}, "echo"),
        ({"prompt": "a", "logprobs": 3}, "logprobs"),
        ({"prompt": "a", "stop": ["x", ""]}, "stop"),
        ({"prompt": "a", "stop": ["x"] * 17}, "stop"),
        ({"prompt": "a", "stream": "yes"}, "stream"),
        ({"prompt": "a", "stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ],
)
def test_fields_that_are_wrong(client: httpx.Client, body: dict[str, Any], field: str) -> None:
    status, told = error(post(client, "/v1/completions", **body))
    assert (status, told["type"], told["param"]) == (400, "invalid_request_error", field)


def test_values_at_the_edges_are_taken(client: httpx.Client) -> None:
    edges = {"temperature": 2, "top_p": 1, "n": 1, "max_tokens": 1.0, "echo": False, "logprobs": None, "stop": None}
    assert post(client, "/v1/completions", prompt="", **edges).status_code == 200


@pytest.mark.parametrize("content", [b"{", b"", b"[]", b'"x"', b"\xff\xfe{", b"[" * 100_000, b'{"n": ' + b"9" * 5000])
def test_what_is_no_json_object(client: httpx.Client, content: bytes) -> None:
    status, told = error(client.post("/v1/completions", content=content))
    assert (status, told["type"], told["param"]) == (400, "invalid_request_error", None)
    assert client.post("/models/generate", content=content).status_code == 422
    response = client.post("/v1/code/completions", content=content)
    assert (response.status_code, type(response.json()["detail"])) == (400, str)


def test_unknown_models(client: httpx.Client) -> None:
    status, told = error(post(client, "/v1/completions", model="gpt-9", prompt="a"))
    assert (status, told["code"]) == (404, "model_not_found")
    assert "'gpt-9'" in told["message"]
    assert MODEL in told["message"]
    response = post(client, "/v1/code/completions", model="gpt-9", prompt="a")
    assert (response.status_code, "not found" in response.json()["detail"]) == (400, True)


@pytest.mark.parametrize("path", ["/v1/code/completions", "/v1/code/prompt"])
def test_wrong_modes_and_a_missing_suffix(client: httpx.Client, path: str) -> None:
    response = post(client, path, mode="chat", prompt="a")
    assert (response.status_code, response.json()["detail"]) == (400, "mode: must be one of 'completion' or 'infill'")
    response = post(client, path, mode="infill", prompt="a")
    assert (response.status_code, response.json()["detail"]) == (500, "suffix is required in infill mode")
    response = post(client, path, prompt="a", files={"a.py": 1})
    assert (response.status_code, response.json()["detail"]) == (400, "a.py: must be a text")


def test_routes_that_are_not_there(client: httpx.Client) -> None:
    response = post(client, "/v1/chat/completions", messages=[])
    assert (response.status_code, response.json()) == (404, {"detail": "Not Found"})
    assert client.get("/v1/completions").status_code == 405
