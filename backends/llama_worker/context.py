"""A loaded model and its key-value cache in cells, addressed by sequence and position. Knows no prompt and no answer.

Errors leave as `WorkerError`. What the cells hold is kept track of in `sequences`.
"""

from __future__ import annotations

import ctypes
import enum
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from backends.llama_worker.errors import WorkerError
from backends.llama_worker.library import AbortFlag, Library, strlen
from backends.llama_worker.sampling import Logits
from backends.llama_worker.vocabulary import Vocabulary

BATCH = 256  # tokens evaluated at once; what an abort can lose. 512 is not faster on a CPU
SEQUENCES = 16  # of documents and places kept, and candidates being written, together
WHOLE_SEQUENCES = 8  # the same of models whose state cannot be cut: each takes memory of its own
AS_MANY_AS_FIT = -2  # layers on the GPU
_TRIED = (-1, 24, 12, 0)  # then; -1: all
KV_TYPES = {"f16": (1, 16), "q8_0": (8, 8.5), "q4_0": (2, 4.5)}  # of ggml: its number, and bits a value
EXTRA_BYTES = 1 << 29  # of cells beyond those that one request can fill, for the other sequences


_TELLING = 32  # tokens of a batch by which the speed is known


class Outcome(enum.Enum):
    DONE = 0
    FULL = 1  # no cells were free; nothing changed
    ABORTED = 2  # nothing of the batch counts; its cells are to be removed


class Batch:
    """The rows of one call: token, position, sequence, and whether the logits after it are wanted."""

    def __init__(self, api: Any) -> None:
        self.tokens, self.positions, self.ids = (np.zeros(BATCH, dtype=np.int32) for _ in range(3))
        self.wanted = np.zeros(BATCH, dtype=np.int8)
        self._counts = np.ones(BATCH, dtype=np.int32)
        cell = ctypes.POINTER(api.llama_seq_id)
        first, size = self.ids.ctypes.data, self.ids.itemsize
        self._cells = (cell * BATCH)(*(ctypes.cast(first + row * size, cell) for row in range(BATCH)))
        self.data = api.llama_batch(
            n_tokens=0,
            token=self.tokens.ctypes.data_as(ctypes.POINTER(api.llama_token)),
            pos=self.positions.ctypes.data_as(ctypes.POINTER(api.llama_pos)),
            n_seq_id=self._counts.ctypes.data_as(ctypes.POINTER(ctypes.c_int32)),
            seq_id=ctypes.cast(self._cells, ctypes.POINTER(cell)),
            logits=self.wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    def clear(self) -> None:
        self.data.n_tokens = 0

    def add(self, sequence: int, position: int, tokens: Sequence[int], *, last_only: bool) -> None:
        """`tokens` from `position` on; the logits after all of them, or after the last."""
        start = self.data.n_tokens
        end = start + len(tokens)
        self.tokens[start:end] = tokens
        self.positions[start:end] = range(position, position + len(tokens))
        self.ids[start:end] = sequence
        self.wanted[start:end] = not last_only
        self.wanted[end - 1] = True
        self.data.n_tokens = end


class Context:
    def __init__(self, library: Library, path: str, progress: Callable[[float], None], **sizes: Any) -> None:
        """`sizes`: context_tokens, threads, gpu_layers, kv_type. Raises WorkerError."""
        self.abort = AbortFlag()
        self.aborted = 0  # batches that llama.cpp gave up in their middle
        self.speed = 0.0  # tokens of a prompt evaluated in a second, of late
        self.library = library
        self._api = api = library.api
        self._context = self._opened(path, progress, sizes)
        self._memory = api.llama_get_memory(self._context)
        self.shifts = bool(api.llama_memory_can_shift(self._memory)) and not self.whole
        self.vocabulary = Vocabulary(library, self._model)
        self.batch = Batch(api)

    def _opened(self, path: str, progress: Callable[[float], None], sizes: Mapping[str, Any]) -> Any:
        api, layers = self._api, sizes["gpu_layers"]
        tried = _TRIED if layers == AS_MANY_AS_FIT else (layers,)
        for layers in tried if api.llama_supports_gpu_offload() else (0,):
            try:
                self._model = model = self._load(path, progress, layers)
                # The state of a recurrent model is one thing: nothing can be taken off its end.
                self.whole = bool(api.llama_model_is_recurrent(model) or api.llama_model_is_hybrid(model))
                self.sequences = WHOLE_SEQUENCES if self.whole else SEQUENCES
                self.size = min(sizes["context_tokens"], int(api.llama_model_n_ctx_train(model)))
                return self._open(sizes["threads"], sizes["kv_type"])
            except WorkerError as error:  # the GPU's memory may not have sufficed
                failure = error
        raise failure

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
            reason = f"damaged, or not a model this llama.cpp knows: {self.library.reason()}"
            raise WorkerError("bad-model", reason)
        if self._api.llama_model_has_encoder(model) or not self._api.llama_model_has_decoder(model):
            raise WorkerError("bad-model", "not a model that continues text")
        return model

    def _open(self, threads: int, kv_type: str) -> Any:
        params = self._api.llama_context_default_params()
        number, bits = KV_TYPES[kv_type]
        params.type_k = params.type_v = number
        if kv_type != "f16":
            params.flash_attn_type = 1  # llama.cpp has quantised values with flash attention alone; else it decides
        params.n_ctx = self.size + min(self.size, EXTRA_BYTES // self._cell_bytes(bits))
        params.n_batch = params.n_ubatch = BATCH  # equal, so that an aborted call has evaluated nothing
        params.n_seq_max = self.sequences
        params.kv_unified = True  # sequences share cells
        params.n_threads = params.n_threads_batch = threads
        params.swa_full = True  # a sliding window would forget what the next request reuses
        params.no_perf = True
        context = self._api.llama_init_from_model(self._model, params)
        if not context:
            self._api.llama_model_free(self._model)
            reason = f"no context of {self.size} tokens could be made: {self.library.reason()}"
            raise WorkerError("bad-model", reason)
        callback = ctypes.cast(strlen(), self._api.ggml_abort_callback)
        self._callback = callback  # kept: llama.cpp holds only its address
        self._api.llama_set_abort_callback(context, callback, ctypes.c_void_p(self.abort.address))
        return context

    def _cell_bytes(self, bits: float) -> int:
        """What one token takes in the cache: two vectors a layer, of numbers of so many bits."""
        api, model = self._api, self._model
        heads = max(1, int(api.llama_model_n_head(model)))
        width = int(api.llama_model_n_embd(model)) * int(api.llama_model_n_head_kv(model)) // heads
        return max(1, int(api.llama_model_n_layer(model) * width * 2 * bits / 8))

    def decode(self) -> Outcome:
        """Evaluate what is in `batch`. Raises WorkerError."""
        if self.abort.is_set():
            return Outcome.ABORTED
        began = time.perf_counter()
        code = self._api.llama_decode(self._context, self.batch.data)
        if code == 0 and self.batch.data.n_tokens >= _TELLING:
            speed = self.batch.data.n_tokens / (time.perf_counter() - began)
            self.speed = (self.speed + speed) / 2 if self.speed else speed
        if code in (0, 1):
            return Outcome(code)
        if code == Outcome.ABORTED.value:
            self.aborted += 1
            return Outcome.ABORTED
        self._api.llama_memory_clear(self._memory, True)
        raise WorkerError("crashed", f"llama.cpp could not evaluate (code {code}): {self.library.reason()}")

    def logits(self, row: int) -> Logits:
        """After the token that stood in `row` of the last batch. Valid until the next one."""
        pointer = self._api.llama_get_logits_ith(self._context, row)
        return np.ctypeslib.as_array(pointer, (self.vocabulary.size,))

    def remove(self, sequence: int, start: int = -1, end: int = -1) -> bool:
        """Forget positions `start` to `end` of a sequence (-1: no bound). False: this model cannot forget a part."""
        return bool(self._api.llama_memory_seq_rm(self._memory, sequence, start, end))

    def copy(self, source: int, target: int, start: int = -1, end: int = -1) -> None:
        """Let `target` share the cells of `source` at these positions."""
        self._api.llama_memory_seq_cp(self._memory, source, target, start, end)

    def shift(self, sequence: int, start: int, end: int, by: int) -> None:
        """Move what stands at these positions. Only if `shifts`."""
        self._api.llama_memory_seq_add(self._memory, sequence, start, end, by)
