"""Secrets in what the gateway is asked: stand-ins in text, files and names, and put back in the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.base import Capabilities, File, Sampling, Shape
from completion.prompt.families import BY_NAME
from completion.stopping import Step
from lsp_server.gateway.question import Question, form, steps_of

TOKEN = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dF3hJ5"
QUESTION = Question(
    model="m",
    prefix=f'login("{TOKEN}")\nx = ',
    suffix="\n",
    verbatim=False,
    files=(File(f"lib/{TOKEN}.py", f"t = '{TOKEN}'\n"),),
    repo=f"repo-{TOKEN}",
    path=f"src/{TOKEN}.py",
    language="python",
    max_tokens=None,
    sampling=Sampling(),
    stop=(),
)


def answered(steps: tuple[Step, ...], text: str) -> str:
    for step in steps:
        text, _ = step.feed(text, last=True)
    return text


@pytest.mark.parametrize("blank", [True, False])
def test_none_is_sent_and_it_comes_back(blank: bool) -> None:
    capabilities = Capabilities(frozenset({Shape.INFILL}), extra_files=True, remote=True)
    formed = form(replace(QUESTION), BY_NAME["starcoder"], capabilities, blank_keys=blank)
    sent = repr(formed.built.prompt)
    assert (TOKEN[4:16] in sent) is not blank
    said = sent.partition('login("')[2].partition('"')[0] if 'login("' in sent else ""
    assert len(said) == len(TOKEN)
    assert answered(steps_of(formed, ()), f'login("{said}")') == f'login("{TOKEN}")'
