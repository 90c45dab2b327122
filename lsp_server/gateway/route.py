"""One backend, and how a question is put to it. Must not know HTTP, any API, or which backend is asked when."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    Finish,
    Observer,
    Shape,
    Usage,
)
from completion.plan import shape_of
from completion.prompt.families import Family, choose
from completion.settings import CompletionSettings
from completion.stopping import through
from lsp_server.gateway.question import Formed, Question, form, shown_prompt, steps_of
from lsp_server.settings import Settings

_OTHERWISE = frozenset({ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED})


class Route:
    """Raises BackendError."""

    def __init__(self, backend: Backend, family: str, settings: Settings, observer: Observer) -> None:
        self.backend = backend
        self._family = family
        self._settings = settings
        self._observer = observer
        self._families: dict[str, Family] = {}  # by model name; a backend may learn it late

    @property
    def model(self) -> str:
        """The model's name, or while it is not known the entry's."""
        return self.backend.model or self.backend.name

    def shown_prompt(self, question: Question) -> str:
        return shown_prompt(question, self._family_now(), self.backend.capabilities)

    async def ask(self, question: Question) -> AsyncGenerator[Delta, None]:
        """Ask; again with another shape of prompt if the backend says that it needs that. Raises BackendError."""
        await self.backend.prepare()
        refused: frozenset[Shape] = frozenset()
        while True:
            now = self.backend.capabilities
            capabilities = replace(now, shapes=now.shapes - refused)
            formed = self._form(question, capabilities)
            written = False
            try:
                async with aclosing(self._stream(question, formed)) as deltas:
                    async for delta in deltas:
                        written = written or bool(delta.text)
                        yield delta
            except BackendError as error:
                refused |= {shape_of(formed.built.prompt)}
                if written or error.kind not in _OTHERWISE or not self.backend.capabilities.shapes - refused:
                    raise
            else:
                return

    def _form(self, question: Question, capabilities: Capabilities) -> Formed:
        blank_keys = capabilities.remote and self._settings.engine.privacy.redact
        return form(question, self._family_now(), capabilities, blank_keys=blank_keys)

    async def _stream(self, question: Question, formed: Formed) -> AsyncGenerator[Delta, None]:
        """The cleaned answer; its last delta, and no other, has `finish`."""
        usage, finish = Usage(), None
        stream = through(self.backend.stream(self._request(question, formed)), steps_of(formed, question.stop))
        async with aclosing(stream):
            async for delta in stream:
                usage, finish = delta.usage or usage, delta.finish
                if delta.text and finish is None:
                    yield Delta(delta.text)
                elif finish is not None:
                    yield Delta(delta.text, finish, usage)
        if finish is None:  # ended by a step
            yield Delta("", Finish.STOP, usage)

    def _request(self, question: Question, formed: Formed) -> BackendRequest:
        usual: CompletionSettings = self._settings.engine.for_language(question.language)
        longest = question.max_tokens or usual.max_tokens
        built, sampling = formed.built, question.sampling
        # What could end a chat's answer may also begin it.
        stops = () if isinstance(built.prompt, ChatPrompt) or built.reply else (*question.stop, *built.stops)
        return BackendRequest(
            built.prompt,
            min(longest, self._settings.gateway.max_tokens) + built.spare_tokens,
            usual.temperature if sampling.temperature is None else sampling.temperature,
            tuple(dict.fromkeys(stops)),
            sampling=sampling,
        )

    def _family_now(self) -> Family:
        model = self.backend.model
        if model not in self._families:
            self._families[model] = choose(self._family, model, self._observer)
        return self._families[model]
