"""llama.cpp with nothing around it, as a measure for ours: a child process of `midfill bench engine`.

One JSON object a line on stdin, one on stdout. Asked are {"op": "load" | "decode" | "lookup" | "prompt" | "keystroke",
...}; the answers are seconds and token counts. Decoding is `llama_decode` and llama.cpp's own greedy sampler in a loop.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from llama_cpp import llama_cpp as api

BATCH = 2048  # n_batch and n_ubatch as llama.cpp has them
UBATCH = 512
GRAM, DRAFT = 3, 4  # tokens that must have stood before, and tokens that are guessed


class Bare:
    def __init__(self, path: str, threads: int, context_tokens: int) -> None:
        api.llama_log_set(_silent, ctypes.c_void_p(0))
        api.llama_backend_init()
        model_params = api.llama_model_default_params()
        model_params.n_gpu_layers = 0
        self.model = api.llama_model_load_from_file(path.encode(), model_params)
        params = api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context_tokens, BATCH, UBATCH
        params.n_threads = params.n_threads_batch = threads
        params.no_perf = True
        self.context = api.llama_init_from_model(self.model, params)
        self.memory = api.llama_get_memory(self.context)
        self.vocab = api.llama_model_get_vocab(self.model)
        self.sampler = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        api.llama_sampler_chain_add(self.sampler, api.llama_sampler_init_greedy())

    def tokenize(self, text: str) -> list[int]:
        data = text.encode()
        buffer = (api.llama_token * (len(data) + 8))()
        count = api.llama_tokenize(self.vocab, data, len(data), buffer, len(buffer), True, False)
        return list(buffer[:count])

    def evaluate(self, tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), BATCH):
            part = tokens[start : start + BATCH]
            buffer = (api.llama_token * len(part))(*part)
            if api.llama_decode(self.context, api.llama_batch_get_one(buffer, len(part))) != 0:
                raise RuntimeError("llama_decode failed")

    def sample(self) -> int:
        return int(api.llama_sampler_sample(self.sampler, self.context, -1))

    def keep(self, count: int) -> None:
        api.llama_memory_seq_rm(self.memory, 0, count, -1)

    def clear(self) -> None:
        api.llama_memory_clear(self.memory, True)

    def decode(self, text: str, count: int) -> dict[str, Any]:
        """From the first token sampled to the last."""
        self.clear()
        self.evaluate(self.tokenize(text))
        token = self.sample()
        buffer = (api.llama_token * 1)()
        written = [token]
        began = time.perf_counter()
        for _ in range(count - 1):
            buffer[0] = token
            if api.llama_decode(self.context, api.llama_batch_get_one(buffer, 1)) != 0:
                raise RuntimeError("llama_decode failed")
            token = self.sample()
            written.append(token)
        return {"tokens": count - 1, "seconds": time.perf_counter() - began, "written": written}

    def lookup(self, text: str, count: int) -> dict[str, Any]:
        """As `decode`, with draft tokens: those that followed the last three tokens where they stood before."""
        self.clear()
        seen = self.tokenize(text)
        self.evaluate(seen)
        held, places = len(seen), {tuple(seen[at - GRAM : at]): at for at in range(GRAM, len(seen))}
        seen.append(self.sample())
        batch = api.llama_batch_init(1 + DRAFT, 0, 1)
        first, began, batches = len(seen), time.perf_counter(), 0
        while len(seen) - first < count - 1:
            key = tuple(seen[-GRAM:])
            at = places.get(key, len(seen))
            draft = seen[at : at + DRAFT]
            places[key] = len(seen)
            batch.n_tokens = 1 + len(draft)
            for row, token in enumerate((seen[-1], *draft)):
                batch.token[row], batch.pos[row], batch.logits[row] = token, held + row, 1
                batch.n_seq_id[row], batch.seq_id[row][0] = 1, 0
            if api.llama_decode(self.context, batch) != 0:
                raise RuntimeError("llama_decode failed")
            batches += 1
            for row in range(1 + len(draft)):
                seen.append(int(api.llama_sampler_sample(self.sampler, self.context, row)))
                if row == len(draft) or seen[-1] != draft[row]:
                    break
                places[tuple(seen[-GRAM:])] = len(seen)
            held += row + 1
            self.keep(held)
        seconds = time.perf_counter() - began
        api.llama_batch_free(batch)
        return {"tokens": len(seen) - first, "seconds": seconds, "batches": batches, "written": seen[first - 1 :]}

    def prompt(self, text: str) -> dict[str, Any]:
        """From a text to the first token of the answer, nothing of it known before."""
        self.clear()
        began = time.perf_counter()
        tokens = self.tokenize(text)
        self.evaluate(tokens)
        self.sample()
        return {"tokens": len(tokens), "seconds": time.perf_counter() - began}

    def keystroke(self, before: str, after: str) -> dict[str, Any]:
        """With `before` evaluated: what the tokens take that `after` has new, and a decode step behind them."""
        old, new = self.tokenize(before), self.tokenize(after)
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        same = min(same, len(new) - 1)
        self.evaluate_from(old)
        self.keep(same)
        began = time.perf_counter()
        self.evaluate(new[same:])
        token = self.sample()
        evaluated = time.perf_counter()
        self.evaluate([token])
        self.sample()
        step = time.perf_counter() - evaluated
        self.held = new
        return {"new": len(new) - same, "tokens": len(new), "evaluate_s": evaluated - began, "step_s": step}

    held: Sequence[int] = ()

    def evaluate_from(self, tokens: Sequence[int]) -> None:
        """Make the cache hold `tokens`, evaluating only what it does not hold."""
        same = next((i for i, (a, b) in enumerate(zip(self.held, tokens, strict=False)) if a != b), None)
        same = min(len(self.held), len(tokens)) if same is None else same
        self.keep(same)
        if same < len(tokens):
            self.evaluate(tokens[same:])
        self.held = tokens


def _drop(_level: int, _text: bytes, _data: object) -> None:
    """llama.cpp's log."""


_silent: Any = api.llama_log_callback(_drop)  # kept: llama.cpp holds only its address


def _step_back(nice: int) -> None:
    """As our worker does: on a busy machine the priority decides."""
    if hasattr(os, "nice"):
        os.nice(nice)


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints
    bare: Any = None
    for line in sys.stdin:
        fields = json.loads(line)
        operation = fields.pop("op")
        if operation == "load":
            _step_back(fields.pop("nice"))
            bare = Bare(**fields)
            answer: dict[str, Any] = {}
        else:
            if operation != "keystroke":
                bare.held = ()
            answer = getattr(bare, operation)(**fields)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
