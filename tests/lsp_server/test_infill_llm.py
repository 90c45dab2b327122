"""The LangChain class that knows the model families, over the loopback service of every kind."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.backends.contract import kind_of, kinds
from tests.services.common import Answer, LoopbackService

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from pydantic import SecretStr

from lsp_server.langchain import InfillLLM

KEY = "test-key"
PROMPT = "def add(a, b):\n    <FILL_ME>\n\nadd(1, 2)\n"
FORMED = "<|fim_prefix|>def add(a, b):\n    <|fim_suffix|>\n\nadd(1, 2)\n<|fim_middle|>"


def made(name: str, service: LoopbackService, **options: Any) -> InfillLLM:
    options = {"model": kind_of(name).model, "ffm_api_key": SecretStr(KEY), **options}
    return InfillLLM(kind=name, base_url=service.url, **options)


@pytest.mark.parametrize("infills", [True, False])
@pytest.mark.parametrize("name", kinds())
def test_every_kind_infills(name: str, infills: bool) -> None:
    with kind_of(name).service(key=KEY, script=[Answer(deltas=("return ", "a + b"))]) as service:
        service.infills = infills
        llm = made(name, service)
        try:
            assert llm.invoke(PROMPT) == "return a + b"
            assert "".join(llm.stream(PROMPT)) == "return a + b"
            if name in ("tgi", "xinference"):
                sent = service.log[-1].body
                assert sent.get("inputs", sent.get("prompt")) == FORMED
        finally:
            llm.close()


@pytest.mark.parametrize("suffix", ["read", "refused", "ignored"])
def test_openai_with_and_without_suffix(suffix: str) -> None:
    with kind_of("openai").service(key=KEY, script=[Answer(deltas=("return ", "a + b"))]) as service:
        service.suffix = suffix  # type: ignore[attr-defined]
        llm = made("openai", service, max_new_tokens=9)
        assert llm.invoke(PROMPT, top_p=0.5, stop=["+"]) == "return a "
        llm.close()
        sent = service.log[-1].body
    assert sent["prompt"] == ("def add(a, b):\n    " if suffix == "read" else FORMED)
    assert (sent["max_tokens"], sent["temperature"], sent["top_p"], sent["stop"][0]) == (9, 1.0, 0.5, "+")


def test_the_family_that_is_set_and_its_terminators() -> None:
    with kind_of("tgi").service(key=KEY, script=[Answer(deltas=("a + b", " <EO", "T>\nmore"))]) as service:
        llm = made("tgi", service, model="some-model", family="codellama")
        assert llm.invoke(PROMPT) == "a + b"
        llm.close()
        sent = service.log[-1].body["inputs"]
    assert sent == "<PRE> def add(a, b):\n     <SUF>\n\nadd(1, 2)\n <MID>"


def test_code_is_taken_out_of_a_chats_reply() -> None:
    with kind_of("mistral").service(key=KEY, script=[Answer(deltas=("Sure:\n```", "python\na + b\n```\n"))]) as service:
        service.infills = False
        llm = made("mistral", service)
        assert llm.invoke(PROMPT) == "a + b"
        assert llm.invoke("Say it.").startswith("Sure:")  # no hole, no code to be taken
        llm.close()


def test_two_holes_are_refused() -> None:
    with kind_of("tgi").service(key=KEY) as service:
        llm = made("tgi", service)
        with pytest.raises(Exception, match="more than once"):
            llm.invoke(PROMPT * 2)
        llm.close()
        assert [seen.path for seen in service.log if seen.method == "POST"] == []


def test_it_needs_no_web_server() -> None:
    missing = "import sys; sys.modules.update(dict.fromkeys(('starlette', 'uvicorn', 'sse_starlette')))"
    code = f"{missing}; import lsp_server.langchain"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
