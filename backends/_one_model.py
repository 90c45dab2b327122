"""A server of one model that says which it is. Must not know any one service."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar

from backends._service import HttpBackend
from backends._sse import decode_object, read_text
from backends.base import BackendError, Check, Observer, Probe
from backends.settings import BackendSettings

_LATER = frozenset({401, 403, 408, 429, 500, 502, 503, 504})  # worth asking again
MOST_ABOUT = 4 << 20  # bytes; a model's chat template is part of what is told


class OneModelBackend(HttpBackend):
    """Asks once, before the first request, for the model's name (unless `model` is set) and its context."""

    about: ClassVar[str]  # path of what the server says about itself

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        """Opens nothing. Raises BackendError(SETTINGS)."""
        super().__init__(name, settings, observer)
        self._asked = False
        self._told_model = ""
        self._context_tokens: int | None = None

    @property
    def model(self) -> str:
        """As set; else as the server told, empty until then."""
        return self._settings.model or self._told_model

    @abstractmethod
    def described(self, record: Mapping[str, Any]) -> tuple[str, int | None]:
        """From what is said at `about`: the model's name, and its context in tokens if it is told."""

    async def prepare(self) -> None:
        """Raises BackendError if the key is missing or the server cannot be reached; any other answer will do."""
        await super().prepare()
        if not self._asked:
            await self._ask_about()

    async def probe(self) -> Probe:
        with suppress(BackendError):  # the probe itself will tell
            await self.prepare()
        found = await super().probe()
        if not self._told_model:
            return found
        context = f", {self._context_tokens} tokens of context" if self._context_tokens else ""
        return Probe((*found.checks, Check("model", True, f"{self._told_model}{context}")))

    async def _ask_about(self) -> None:
        key = await self._keys.get()
        url = self._http.url(self.about)
        headers = {"authorization": f"Bearer {key.value}"} if key else {}
        async with self._http.within(asyncio.get_running_loop().time() + self._settings.timeout_s, url):
            response = await self._http.get(url, headers=headers)
            try:
                body = await read_text(response, MOST_ABOUT)
            finally:
                await self._http.release(response)
        self._asked = response.status_code not in _LATER
        if response.status_code == 200:
            with suppress(BackendError):  # not JSON: some other page
                self._told_model, self._context_tokens = self.described(decode_object(body))


def name_in(value: Any) -> str:
    """A model's name out of a record; of a GGUF file's path its last part."""
    text = value if isinstance(value, str) else ""
    return text.replace("\\", "/").rpartition("/")[2].removesuffix(".gguf") if text.endswith(".gguf") else text
