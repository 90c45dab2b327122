"""The LLM of LangChain that knows the model families: it infills with every kind. Imported by nothing of midfill.

`backends.langchain` must not know the families, so that this stands above it; it must not know any service.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from backends.base import Backend, Delta, SilentObserver
from backends.langchain import MARKER, MidfillLLM
from completion.settings import EngineSettings, PrivacySettings
from lsp_server.gateway.question import Question
from lsp_server.gateway.route import Route
from lsp_server.gateway.settings import GatewaySettings
from lsp_server.settings import Settings

# What a program sends is sent as it is, and no gateway limits its length.
_SETTINGS = Settings(
    engine=EngineSettings(privacy=PrivacySettings(redact=False)), gateway=GatewaySettings(max_tokens=10**9)
)


class InfillLLM(MidfillLLM):
    """A prompt with `<FILL_ME>` is formed for the model as the gateway forms one: for services that infill, in the form
    of the model's family, or as a chat of which the code is taken. The answer ends at the family's terminators.
    """

    family: str = ""  # empty: guessed from the model's name

    @property
    def _llm_type(self) -> str:
        return f"midfill-infill-{self.kind}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**super()._identifying_params, "family": self.family}

    def _answer(self, backend: Backend, prompt: str, stops: tuple[str, ...]) -> AsyncGenerator[Delta, None]:
        if prompt.count(MARKER) != 1:
            return super()._answer(backend, prompt, stops)
        request = self._request(stops)
        said = request.sampling
        if "temperature" not in self.model_kwargs:
            said = replace(said, temperature=request.temperature)
        prefix, _, suffix = prompt.partition(MARKER)
        question = Question(self.model, prefix, suffix, max_tokens=request.max_tokens, sampling=said, stop=stops)
        return Route(backend, self.family, _SETTINGS, SilentObserver()).ask(question)
