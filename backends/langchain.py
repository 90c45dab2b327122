"""Any backend as an LLM of LangChain (langchain-core 1.x). Knows no editor; imported by nothing of midfill.

from backends.langchain import MidfillLLM
llm = MidfillLLM(base_url="https://host/api", model="qwen2.5-coder-7b-32k", ffm_api_key="…")
llm.invoke("def add(a, b):\\n    return <FILL_ME>\\n")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeVar
from weakref import WeakKeyDictionary

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, field_validator

from backends import registry
from backends._service import HttpBackend
from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    ChatPrompt,
    Delta,
    ErrorKind,
    InfillPrompt,
    Message,
    Piece,
    Prompt,
    RawPrompt,
    Sampling,
    Shape,
    SilentObserver,
)
from backends.settings import BackendSettings

T = TypeVar("T")

_OTHER_SHAPE = frozenset({ErrorKind.INFILL_UNSUPPORTED, ErrorKind.SHAPE_UNSUPPORTED})

MARKER = "<FILL_ME>"  # where a prompt holds it once, the model infills
MANY = 2048  # tokens, where as many as possible are wanted: of no model documented for FFM is it more than half
# FFM's names of options, and ours; other kinds are told them only if they were set.
_SAMPLING = {"top_k": "top_k", "top_p": "top_p", "frequence_penalty": "repetition_penalty"}
_OF_A_REQUEST = {"temperature", "max_new_tokens", "stop", *_SAMPLING}  # what else is said makes it another backend


class MidfillLLM(BaseLLM):
    """An LLM over one backend. A prompt with one `<FILL_ME>` is infilled, any other is continued.

    Sync calls run on a loop of their own in a thread, so they work where an event loop runs already, too. Raises
    BackendError.
    """

    model_config = ConfigDict(extra="forbid", ignored_types=(cached_property,))

    kind: str = "ffm"
    base_url: str = ""
    model: str = ""
    temperature: float | None = Field(default=1.0, ge=0)  # None: 1, which is what FFM does if it is not told
    top_k: int = 50
    top_p: float = 1.0
    max_new_tokens: int = 350  # -1: as many as possible, at most `MANY`
    frequence_penalty: float = 1.0
    stop: list[str] | None = None
    ffm_api_key: SecretStr | None = None  # None: the variable named by `key_env`, if there is one
    key_env: str = ""
    timeout_s: float = 60.0
    model_kwargs: dict[str, Any] = Field(default_factory=dict)  # the service's own parameters; they win

    _backends: WeakKeyDictionary[asyncio.AbstractEventLoop, Backend] = PrivateAttr(default_factory=WeakKeyDictionary)

    @field_validator("max_new_tokens")
    @classmethod
    def _above_0_or_all(cls, tokens: int) -> int:
        if tokens < 1 and tokens != -1:
            raise ValueError("allowed: a number above 0, or -1")
        return tokens

    @property
    def _llm_type(self) -> str:
        return f"midfill-{self.kind}"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        names = ("kind", "base_url", "model", "temperature", *_SAMPLING, "max_new_tokens", "stop")
        return {**{name: getattr(self, name) for name in names}, **self.model_kwargs}

    @property
    def lc_secrets(self) -> dict[str, str]:
        return {"ffm_api_key": "FFM_API_KEY"}

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        future = asyncio.run_coroutine_threadsafe(self._agenerate(prompts, stop, **kwargs), self._loop)
        return _waited(future)

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        answers = await asyncio.gather(*[self._whole(prompt, stop, kwargs) for prompt in prompts])
        usage = {
            name: sum((answer.generation_info or {}).get("token_usage", {}).get(name, 0) for answer in answers)
            for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        output = {"token_usage": usage, "model_name": self.model}
        return LLMResult(generations=[[answer] for answer in answers], llm_output=output)

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        chunks = self._chunks(prompt, stop, kwargs)
        try:
            while (chunk := _waited(asyncio.run_coroutine_threadsafe(_next(chunks), self._loop))) is not None:
                if run_manager:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk
        finally:
            asyncio.run_coroutine_threadsafe(chunks.aclose(), self._loop).result()

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        async with aclosing(self._chunks(prompt, stop, kwargs)) as chunks:
            async for chunk in chunks:
                if run_manager:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _whole(self, prompt: str, stop: list[str] | None, options: dict[str, Any]) -> Generation:
        parts, info = [], None
        async with aclosing(self._chunks(prompt, stop, options)) as chunks:
            async for chunk in chunks:
                parts.append(chunk.text)
                info = chunk.generation_info or info
        return Generation(text="".join(parts), generation_info=info)

    async def _chunks(
        self, prompt: str, stop: list[str] | None, options: dict[str, Any]
    ) -> AsyncGenerator[GenerationChunk, None]:
        this = self._with(options) if options else self
        own = bool(options.keys() - _OF_A_REQUEST)
        backend = this._built() if own else self._shared()
        stops = tuple(stop or this.stop or ())
        try:
            await backend.prepare()
            held = Held(stops)
            async with aclosing(this._answer(backend, prompt, stops)) as deltas:
                async for delta in deltas:
                    text, met = held.feed(delta.text, last=delta.finish is not None)
                    info = _info(delta) if delta.finish or met else None
                    if text or info:
                        yield GenerationChunk(text=text, generation_info=info)
                    if met:
                        return
        finally:
            if own:
                await backend.aclose()

    def _answer(self, backend: Backend, prompt: str, stops: tuple[str, ...]) -> AsyncGenerator[Delta, None]:
        """The answer as the backend gives it. Raises BackendError."""
        return _deltas(backend, prompt, self._request(stops))

    def _request(self, stops: tuple[str, ...]) -> BackendRequest:
        """What is asked, but for the prompt."""
        said = {ours: getattr(self, name) for name, ours in _SAMPLING.items() if self._says(name)}
        temperature = 1.0 if self.temperature is None else self.temperature
        longest = MANY if self.max_new_tokens == -1 else self.max_new_tokens
        return BackendRequest(RawPrompt(()), longest, temperature, stops, sampling=Sampling(**said))

    def _says(self, name: str) -> bool:
        return name not in self.model_kwargs and (self.kind == "ffm" or name in self.model_fields_set)

    def _with(self, options: dict[str, Any]) -> Self:
        """Options of one call are fields of the class; any others are the service's. Raises ValueError."""
        own = {name: value for name, value in options.items() if name in type(self).model_fields}
        more = {name: value for name, value in options.items() if name not in own}
        this = self.model_copy(update={"model_kwargs": {**self.model_kwargs, **more}})
        for name, value in own.items():
            self.__pydantic_validator__.validate_assignment(this, name, value)
        return this

    def _shared(self) -> Backend:
        """One per event loop, as its connections belong to the loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._backends:
            self._backends[loop] = self._built()
        return self._backends[loop]

    def _built(self) -> Backend:
        settings = BackendSettings(
            kind=self.kind,
            url=self.base_url,
            model=self.model,
            key_env=self.key_env,
            timeout_s=self.timeout_s,
            parameters=self.model_kwargs,
        )
        backend = registry.create("langchain", settings, SilentObserver())
        if self.ffm_api_key is not None and isinstance(backend, HttpBackend):
            backend.use_key(self.ffm_api_key.get_secret_value(), "the argument ffm_api_key")
        return backend

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        backend = self._backends.pop(asyncio.get_running_loop(), None)
        if backend is not None:
            await backend.aclose()

    def close(self) -> None:
        """Close the connections of sync calls."""
        asyncio.run_coroutine_threadsafe(self.aclose(), self._loop).result()

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, name="midfill-langchain", daemon=True).start()
        return loop


class Held:
    """Cuts a stream before the first of `stops`, also if it is split over deltas."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = [stop for stop in stops if stop]
        self._held = ""

    def feed(self, text: str, *, last: bool) -> tuple[str, bool]:
        """What may pass, and whether a stop was met."""
        text = self._held + text
        found = [at for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            return text[: min(found)], True
        longest = max((len(stop) for stop in self._stops), default=1) - 1
        keep = 0
        for length in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                keep = length
                break
        keep = 0 if last else keep
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], False


async def _deltas(backend: Backend, prompt: str, request: BackendRequest) -> AsyncGenerator[Delta, None]:
    """Ask in the shapes the backend takes, one after the other if it says that it cannot do one."""
    refused: set[Shape] = set()
    while True:
        shape, asked = _formed(prompt, backend.capabilities.shapes, refused)
        begun = False
        try:
            async with aclosing(backend.stream(replace(request, prompt=asked))) as deltas:
                async for delta in deltas:
                    begun = True
                    yield delta
        except BackendError as error:
            refused.add(shape)
            if begun or error.kind not in _OTHER_SHAPE or not _left(prompt, backend.capabilities.shapes, refused):
                raise
        else:
            return


def _left(prompt: str, shapes: frozenset[Shape], refused: set[Shape]) -> list[Shape]:
    """The shapes a prompt can be asked in, best first. Raw prompts are tried even where they are not preferred."""
    wanted: list[Shape]
    if MARKER in prompt:
        wanted = [shape for shape in (Shape.INFILL, Shape.CHAT) if shape in shapes]
    elif Shape.CHAT in shapes and Shape.RAW not in shapes:
        wanted = [Shape.CHAT]
    else:
        wanted = [Shape.RAW]
        wanted += [shape for shape in (Shape.CHAT, Shape.INFILL) if shape in shapes]
    return [shape for shape in wanted if shape not in refused]


def _formed(prompt: str, shapes: frozenset[Shape], refused: set[Shape]) -> tuple[Shape, Prompt]:
    """Raises BackendError."""
    if prompt.count(MARKER) > 1:
        raise BackendError(ErrorKind.BAD_REQUEST, f"The prompt holds {MARKER} more than once.")
    left = _left(prompt, shapes, refused)
    if not left:
        raise BackendError(ErrorKind.INFILL_UNSUPPORTED, f"This backend does not infill: leave {MARKER} out.")
    prefix, marker, suffix = prompt.partition(MARKER)
    if left[0] is Shape.INFILL:
        return Shape.INFILL, InfillPrompt(prefix, suffix)
    if left[0] is Shape.CHAT:
        task = (Message("system", f"Answer with nothing but the text that belongs at {MARKER}."),) if marker else ()
        return Shape.CHAT, ChatPrompt((*task, Message("user", prompt)))
    return Shape.RAW, RawPrompt((Piece(prompt),))


def _info(delta: Delta) -> dict[str, Any]:
    info: dict[str, Any] = {"finish_reason": delta.finish.value if delta.finish else "stop"}
    if delta.usage:
        prompt, generated = delta.usage.prompt_tokens or 0, delta.usage.generated_tokens or 0
        info["token_usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }
    return info


async def _next(chunks: AsyncGenerator[GenerationChunk, None]) -> GenerationChunk | None:
    return await anext(chunks, None)


def _waited(future: Future[T]) -> T:
    """The result; an interrupted caller cancels the work."""
    try:
        return future.result()
    finally:
        future.cancel()
