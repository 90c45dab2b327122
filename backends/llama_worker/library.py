"""llama.cpp through its C interface: vocabulary, context and its key-value cache. The one place that imports llama_cpp.

Knows nothing of prompts, answers or the protocol. Errors leave as `WorkerError`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from backends.llama_worker.errors import WorkerError
from backends.llama_worker.layout import Fim
from backends.llama_worker.sampling import ByteTable, Logits

BATCH = 256  # tokens evaluated at once; what an abort can lose. 512 is not faster on a CPU
_ABORTED = 2  # llama_decode: the abort callback said so
_ERROR = 4  # GGML_LOG_LEVEL_ERROR
_CONTROL = 1 << 3  # LLAMA_TOKEN_ATTR_CONTROL
_SEPARATORS = (
    "<file_sep>",
    "<|file_sep|>",
    "<|file_separator|>",
    "<repo_name>",
    "<reponame>",
    "<|repo_name|>",
    "<filename>",
)


class AbortFlag:
    """One byte that llama.cpp reads before each graph node, and that another thread sets.

    The callback given to llama.cpp is the C library's `strlen` over this byte and a zero behind it: 0 (go on) or 1
    (abort). A Python callback costs the lock of the interpreter some 500 times a token.
    """

    def __init__(self) -> None:
        self._bytes = ctypes.create_string_buffer(2)

    @property
    def address(self) -> int:
        return ctypes.addressof(self._bytes)

    def set(self) -> None:
        self._bytes[0] = b"\1"

    def clear(self) -> None:
        self._bytes[0] = b"\0"

    def is_set(self) -> bool:
        return self._bytes[0] != b"\0"


def _strlen() -> Any:
    if sys.platform == "win32":
        return ctypes.cdll.msvcrt.strlen
    return ctypes.CDLL(None).strlen


class Library:
    """llama.cpp, loaded and quiet: only errors go to stderr, and the first one is kept. Raises ImportError too."""

    def __init__(self) -> None:
        try:
            from llama_cpp import llama_cpp as bindings
        except (OSError, RuntimeError) as error:  # its shared library
            raise WorkerError("settings", f"llama.cpp cannot be loaded, reinstall llama-cpp-python: {error}") from error
        self.api: Any = bindings
        self._error = ""
        self._on_log = self.api.llama_log_callback(self._log)  # kept: llama.cpp holds only its address
        self.api.llama_log_set(self._on_log, ctypes.c_void_p(0))
        self.api.llama_backend_init()

    def _log(self, level: int, text: bytes, _data: object) -> None:
        if level == _ERROR:
            line = text.decode("utf-8", "replace").strip()
            self._error = self._error or line  # those after it only say that something failed
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def reason(self) -> str:
        """What llama.cpp said went wrong since this was last asked."""
        reason, self._error = self._error, ""
        return reason or "no reason given"


class Vocabulary:
    """Tokens of a model. Implements `layout.Tokenizer`."""

    def __init__(self, library: Library, model: Any) -> None:
        self._api = library.api
        self._vocab = self._api.llama_model_get_vocab(model)
        self.size = int(self._api.llama_vocab_n_tokens(self._vocab))
        names = ("pre", "suf", "mid", "pad", "rep", "sep")
        self.fim = Fim(**{name: self._id(f"llama_vocab_fim_{name}") for name in names})
        self.first = self._id("llama_vocab_bos") if self._api.llama_vocab_get_add_bos(self._vocab) else None

    def _id(self, function: str) -> int | None:
        token = int(getattr(self._api, function)(self._vocab))
        return token if token >= 0 else None

    @cached_property
    def _silent(self) -> frozenset[int]:
        """Tokens that are no text: control tokens and markers of infilling, files and repositories."""
        fim = self.fim
        marks = {fim.pre, fim.suf, fim.mid, fim.pad, fim.rep, fim.sep, *map(self.special, _SEPARATORS)}
        control = (t for t in range(self.size) if self._api.llama_vocab_get_attr(self._vocab, t) & _CONTROL)
        return frozenset({t for t in marks if t is not None} | set(control))

    def ends(self, token: int) -> bool:
        """Whether the answer is over: end of generation, or a token that is no text."""
        return token in self._silent or bool(self._api.llama_vocab_is_eog(self._vocab, token))

    @cached_property
    def table(self) -> ByteTable:
        return ByteTable((self.piece(token), token) for token in range(self.size) if not self.ends(token))

    def tokenize(self, text: str) -> list[int]:
        return self._tokenize(text, parse_special=False)

    def special(self, text: str) -> int | None:
        ids = self._tokenize(text, parse_special=True)
        return ids[0] if len(ids) == 1 else None

    def _tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")  # lone surrogates
        room = len(data) + 8
        while True:
            buffer = (self._api.llama_token * room)()
            count = self._api.llama_tokenize(self._vocab, data, len(data), buffer, room, False, parse_special)
            if count >= 0:
                return list(buffer[:count])
            room = -count

    def piece(self, token: int) -> bytes:
        """The token's bytes, not always whole characters; empty for a control token."""
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._api.llama_token_to_piece(self._vocab, token, buffer, room, 0, False)
            if count >= 0:
                return buffer.raw[:count]
            room = -count


class Context:
    """A loaded model and what its key-value cache holds. `held` is always exactly the evaluated tokens."""

    def __init__(self, library: Library, path: str, progress: Callable[[float], None], **sizes: int) -> None:
        """`sizes`: context_tokens, threads, gpu_layers. Raises WorkerError."""
        self.abort = AbortFlag()
        self.held: list[int] = []
        self.aborted = 0  # batches that llama.cpp gave up in their middle
        self._library = library
        self._api = library.api
        self._model = self._load(path, progress, sizes["gpu_layers"])
        trained = int(self._api.llama_model_n_ctx_train(self._model))
        self._context = self._open(min(sizes["context_tokens"], trained), sizes["threads"])
        self._memory = self._api.llama_get_memory(self._context)
        self.vocabulary = Vocabulary(library, self._model)
        # llama.cpp rounds up; beyond what was asked or trained is not used.
        self.size = min(sizes["context_tokens"], trained, int(self._api.llama_n_ctx(self._context)))

    def _load(self, path: str, progress: Callable[[float], None], gpu_layers: int) -> Any:
        def on_progress(fraction: float, _data: object) -> bool:
            progress(fraction)
            return True

        callback = self._api.llama_progress_callback(on_progress)
        params = self._api.llama_model_default_params()
        params.n_gpu_layers = gpu_layers
        params.progress_callback = callback
        model = self._api.llama_model_load_from_file(path.encode("utf-8"), params)
        if not model:
            reason = f"damaged, or not a model this llama.cpp knows: {self._library.reason()}"
            raise WorkerError("bad-model", reason)
        if self._api.llama_model_has_encoder(model) or not self._api.llama_model_has_decoder(model):
            raise WorkerError("bad-model", "not a model that continues text")
        return model

    def _open(self, size: int, threads: int) -> Any:
        params = self._api.llama_context_default_params()
        params.n_ctx = size
        params.n_batch = params.n_ubatch = BATCH  # equal, so that an aborted call has evaluated nothing
        params.n_threads = params.n_threads_batch = threads
        params.swa_full = True  # a sliding window would forget what the next request reuses
        params.no_perf = True
        context = self._api.llama_init_from_model(self._model, params)
        if not context:
            reason = f"no context of {size} tokens could be made: {self._library.reason()}"
            raise WorkerError("bad-model", reason)
        callback = ctypes.cast(_strlen(), self._api.ggml_abort_callback)
        self._callback = callback  # kept: llama.cpp holds only its address
        self._api.llama_set_abort_callback(context, callback, ctypes.c_void_p(self.abort.address))
        return context

    def keep(self, count: int) -> None:
        """Forget all but the first `count` tokens; all of them if the model cannot forget a part (recurrent ones)."""
        if count < len(self.held):
            self._forget(count)

    def _forget(self, count: int) -> None:
        if not self._api.llama_memory_seq_rm(self._memory, 0, count, -1):
            self._api.llama_memory_clear(self._memory, True)
            count = 0
        del self.held[count:]

    def extend(self, tokens: Sequence[int]) -> bool:
        """Evaluate at most BATCH more tokens. False: aborted, and nothing of them is held. Raises WorkerError."""
        if self.abort.is_set():
            return False
        buffer = (self._api.llama_token * len(tokens))(*tokens)
        code = self._api.llama_decode(self._context, self._api.llama_batch_get_one(buffer, len(tokens)))
        if code == 0:
            self.held += tokens
            return True
        if code == _ABORTED:
            self.aborted += 1
            self._forget(len(self.held))
            return False
        self._forget(0)
        raise WorkerError("crashed", f"llama.cpp could not evaluate (code {code}): {self._library.reason()}")

    def logits(self) -> Logits:
        """Of the token after the last evaluated one. Valid until the next `extend`."""
        pointer = self._api.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(pointer, (self.vocabulary.size,))
