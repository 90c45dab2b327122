"""A local GGUF model through llama.cpp, which runs in a child process. Knows no cursor; does not import llama_cpp.

A crash or an out-of-memory kill takes the child alone: the request fails, and the next one starts a new child.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import cached_property
from pathlib import Path
from typing import Any

from backends._llama_link import place
from backends._llama_process import LlamaProcess, Question
from backends._model_file import check_memory, model_file, model_name, model_place, physical_cores
from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Check,
    Delta,
    ErrorKind,
    Finish,
    InfillPrompt,
    Observer,
    Piece,
    Probe,
    Prompt,
    RawPrompt,
    Shape,
    Usage,
)
from backends.settings import BackendSettings

# What `parameters` may hold. `judge`: whether of several answers the one that fits what follows the hole is taken; left
# out, where this machine is fast enough. `heal` = false leaves prompts as they end: for measuring.
PARAMETERS = ("heal", "judge", "seed", "top_k", "top_p")
IDLE_S = 10.0  # a child that has not stopped computing this long after a cancel hangs, and is killed; seconds
_PROBE_TOKENS = 32
_INFILLS = "by the model's own tokens"
_CONTINUES = "the model has no tokens for it: it continues the text, and of several answers the one that fits is taken"
_BEFORE_LOAD = Capabilities(frozenset({Shape.RAW}), literal_text=True, remote=False)


class LlamaCppBackend:
    """One model, one child, one request at a time; later ones wait. `capabilities` are known after `prepare`."""

    def __init__(self, name: str, settings: BackendSettings, observer: Observer) -> None:
        self._name = name
        self._shown = model_place(settings)
        self._settings = settings
        self._observer = observer
        self._capabilities = _BEFORE_LOAD
        self._process: LlamaProcess | None = None
        self._start: asyncio.Task[LlamaProcess] | None = None
        self._turn = asyncio.Lock()
        self._closed = False
        self._load_s = 0.0  # how long the last load took; little if another server had it loaded
        self._refused: tuple[str, BackendError] | None = None  # a file that cannot be loaded is not tried again

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return model_name(self._settings)

    @cached_property
    def fingerprint(self) -> str:
        """Of the file as it is when first asked, which is when it is loaded: looking it up costs a system call."""
        parameters = json.dumps(dict(self._settings.parameters), sort_keys=True, default=str)
        return f"llama-cpp {_identity(self._shown)} {self._settings.context_tokens} {parameters}"

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    @property
    def pid(self) -> int | None:
        """The child's process id while one runs."""
        return self._process.pid if self._process is not None and self._process.alive else None

    async def prepare(self) -> None:
        """Start the child and load the model. Concurrent calls share one start, and outlive each other's cancellation.

        Raises BackendError: SETTINGS, BAD_MODEL, CRASHED.
        """
        await self._ready()

    async def _ready(self) -> LlamaProcess:
        if self._closed:
            raise BackendError(ErrorKind.CRASHED, "The local model was shut down.")
        if self._process is not None and self._process.alive:
            return self._process
        if self._start is None:
            self._start = asyncio.create_task(self._launch())
            self._start.add_done_callback(self._started)
        start = self._start
        await asyncio.wait({start})  # not awaited itself: who is cancelled here must not stop the load
        if start.cancelled():
            raise BackendError(ErrorKind.CRASHED, "The local model was shut down.")
        return start.result()

    def _started(self, start: asyncio.Task[LlamaProcess]) -> None:
        self._start = None
        if not start.cancelled() and start.exception() is None:
            self._process = start.result()

    async def _launch(self) -> LlamaProcess:
        path = model_file(self._settings)
        if self._refused is not None and self._refused[0] == _identity(str(path)):
            raise self._refused[1]

        def check() -> None:
            if self._settings.gpu_layers in (0, -2):
                check_memory(path, self._shown)

        sizes = self._sizes()
        # All who want the same model in the same way share a worker, whatever the backend is called.
        where = place([_identity(str(path.resolve())), *sizes.values()])
        while True:
            process = await LlamaProcess.start(where, check)
            loaded, began = False, time.perf_counter()
            try:
                await self._load(process, path)
                loaded, self._load_s = True, time.perf_counter() - began
            except BackendError:
                if not process.left:
                    raise
            finally:
                if not loaded:
                    await process.aclose()
            if loaded:
                return process

    async def _load(self, process: LlamaProcess, path: Path) -> None:
        self._check_parameters()
        key, title = f"llama-cpp:{self._name}:load", f"Loading {self.model}"
        self._observer.progress(key, title, 0.0)
        question = process.ask(
            "load",
            path=str(path),
            idle_unload_s=self._settings.idle_unload_s,
            **self._sizes(),
        )
        try:
            while "done" not in (reply := await question.next()):
                self._observer.progress(key, title, reply["progress"])
        except BackendError as error:
            raise self._load_error(error, path) from error
        finally:
            self._observer.progress(key, title, 1.0, done=True)
        shapes = {Shape.RAW} | ({Shape.INFILL} if reply["infill"] else set())
        self._capabilities = Capabilities(
            frozenset(shapes),
            literal_text=True,
            extra_files=reply["extra_files"],
            context_tokens=reply["context_tokens"],
            remote=False,
            several=True,
            warms=True,
        )

    def _sizes(self) -> dict[str, Any]:
        """What the memory and the speed of the worker depend on."""
        settings = self._settings
        return {
            "context_tokens": settings.context_tokens,
            "threads": settings.threads or physical_cores(),
            "gpu_layers": settings.gpu_layers,
            "kv_type": settings.kv_type,
        }

    def _load_error(self, error: BackendError, path: Path) -> BackendError:
        if error.kind is not ErrorKind.BAD_MODEL:
            return error
        refused = BackendError(ErrorKind.BAD_MODEL, f"{self._shown} cannot be loaded: {error.message}")
        self._refused = (_identity(str(path)), refused)
        return refused

    def _check_parameters(self) -> None:
        unknown = [name for name in self._settings.parameters if name not in PARAMETERS]
        if unknown:
            message = (
                f"backends.{self._name}.parameters: {', '.join(unknown)} not used; allowed: {', '.join(PARAMETERS)}."
            )
            self._observer.notice(f"llama-cpp:{self._name}:parameters", message)

    async def stream(self, request: BackendRequest) -> AsyncGenerator[Delta, None]:
        """Deltas of one token or more, each with the counts so far. Cancelling ends it at once, the child soon after.

        A stop string is sent with the token that completes it; the reader cuts. Raises BackendError: as `prepare`, and
        INFILL_UNSUPPORTED, BAD_REQUEST, CRASHED, TIMEOUT (nothing was written within settings.timeout_s, loading and
        waiting not counted; what was written by then is the answer, with LENGTH).
        """
        fields = self._fields(request)
        async with self._turn:
            begun = False
            while True:
                process = await self._idle()
                question = process.ask("generate", **fields)
                try:
                    async with aclosing(self._deltas(question)) as deltas:
                        async for delta in deltas:
                            begun = True
                            yield delta
                except BackendError:
                    if begun or not process.left:
                        raise
                else:
                    return
                finally:
                    question.drop()

    async def _deltas(self, question: Question) -> AsyncGenerator[Delta, None]:
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_s
        written = False
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    reply = await question.next()
            except TimeoutError:
                if written:
                    yield Delta("", Finish.LENGTH)
                    return
                message = (
                    f"The local model wrote nothing within {self._settings.timeout_s:g} s. Lower"
                    " completion.prompt_tokens (the prompt is what takes its time) and completion.max_tokens, or raise"
                    " timeout_s."
                )
                raise BackendError(ErrorKind.TIMEOUT, message) from None
            if "done" in reply:
                yield Delta("", Finish(reply["done"]), _usage(reply))
                return
            written = True
            yield Delta(reply["text"], usage=_usage(reply), index=reply["index"])

    async def _idle(self) -> LlamaProcess:
        """The child, started if need be, and done with what was cancelled before. A hanging one is replaced."""
        process = await self._ready()
        try:
            async with asyncio.timeout(IDLE_S):
                await process.idle.wait()
        except TimeoutError:
            process.kill()
            await process.aclose()
        return process if process.alive else await self._ready()

    def _fields(self, request: BackendRequest) -> dict[str, Any]:
        parameters = {key: value for key, value in self._settings.parameters.items() if key in PARAMETERS}
        parameters |= request.sampling.named("seed", "top_k", "top_p")
        return {
            "prompt": _prompt_fields(request.prompt),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "stop": list(request.stop),
            "first_line": request.first_line,
            "candidates": request.candidates,
            "parameters": parameters,
        }

    async def probe(self) -> Probe:
        """Load, then time a short answer. Raises nothing of the backend's: a failure is a check that is not ok."""
        try:
            await self.prepare()
            began = time.perf_counter()
            usage = await self._answer_length(RawPrompt((Piece("def add(a, b):\n    return"),)))
        except BackendError as error:
            return Probe((Check("model", False, error.message),))
        speed = (usage.generated_tokens or 0) / (time.perf_counter() - began)
        infill = Shape.INFILL in self._capabilities.shapes
        size = self._capabilities.context_tokens
        return Probe(
            (
                Check("model", True, f"{self._shown}, {size} tokens of context"),
                Check("load", True, f"{self._load_s:.2f} s"),
                Check("speed", True, f"{speed:.0f} tokens/s"),
                Check("infill", True, _INFILLS if infill else _CONTINUES),
            )
        )

    async def _answer_length(self, prompt: RawPrompt) -> Usage:
        usage = Usage()
        async with aclosing(self.stream(BackendRequest(prompt, _PROBE_TOKENS))) as deltas:
            async for delta in deltas:
                usage = delta.usage or usage
        return usage

    async def aclose(self) -> None:
        self._closed = True
        if self._start is not None:
            start = self._start
            start.cancel()
            await asyncio.wait({start})
            self._started(start)  # it may have been done before
        if self._process is not None:
            await self._process.aclose()


def _prompt_fields(prompt: Prompt) -> Mapping[str, Any]:
    if isinstance(prompt, ChatPrompt):
        raise BackendError(ErrorKind.BAD_REQUEST, "The local model takes no chat prompt.")
    if isinstance(prompt, InfillPrompt):
        return {
            "kind": "infill",
            "prefix": prompt.prefix,
            "suffix": prompt.suffix,
            "path": prompt.path,
            "repo": prompt.repo,
            "extra": [(file.path, file.text) for file in prompt.extra],
        }
    pieces = [(piece.text, piece.special) for piece in prompt.pieces]
    return {"kind": "raw", "pieces": pieces, "suffix": prompt.suffix}


def _usage(reply: Mapping[str, Any]) -> Usage:
    return Usage(reply["prompt_tokens"], reply["reused_tokens"], reply["generated_tokens"])


def _identity(path: str) -> str:
    """Changes when the file does."""
    try:
        status = Path(path).expanduser().stat()
    except OSError:
        return path
    return f"{path} {status.st_size} {status.st_mtime_ns}"
