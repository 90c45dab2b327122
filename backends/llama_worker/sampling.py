"""From logits to a token, by llama.cpp's own samplers. Knows no model, no text and no sequence."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from backends.llama_worker.answer import Ids

Logits = npt.NDArray[np.float32]

TOP_K = 40  # llama.cpp's own defaults
TOP_P = 0.95
_ANY_SEED = 0xFFFFFFFF  # LLAMA_DEFAULT_SEED: another one each time
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data


def log_sum(logits: Logits) -> float:
    """What is taken off a logit for the logarithm of its probability."""
    top = logits.max()
    return float(top) + float(np.log(np.exp(logits - top).sum()))


class Sampler:
    """Greedy at temperature 0; else `top_k` (0: off), `top_p`, temperature and a draw, repeatable with `seed`.

    Greedy is the first largest logit, which numpy finds in a tenth of the time that llama.cpp's sampler takes to copy
    the vocabulary. Must be closed.
    """

    def __init__(self, api: Any, temperature: float, parameters: Mapping[str, Any]) -> None:
        self._api = api
        self._chain = self._build(temperature, parameters) if temperature > 0 else None

    def _build(self, temperature: float, parameters: Mapping[str, Any]) -> Any:
        api, seed = self._api, parameters.get("seed")
        chain = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        api.llama_sampler_chain_add(chain, api.llama_sampler_init_top_k(int(parameters.get("top_k", TOP_K))))
        api.llama_sampler_chain_add(chain, api.llama_sampler_init_top_p(float(parameters.get("top_p", TOP_P)), 1))
        api.llama_sampler_chain_add(chain, api.llama_sampler_init_temp(temperature))
        number = _ANY_SEED if seed is None else int(seed) % _ANY_SEED
        api.llama_sampler_chain_add(chain, api.llama_sampler_init_dist(number))
        return chain

    def pick(self, logits: Logits, allowed: Ids | None = None) -> int:
        """One of all tokens, or of the `allowed` ones (not empty)."""
        scores = logits if allowed is None else logits[allowed]
        if self._chain is None:
            index = int(scores.argmax())
            return index if allowed is None else int(allowed[index])
        candidates = np.empty(len(scores), dtype=_CANDIDATE)
        candidates["id"] = np.arange(len(scores), dtype=np.int32) if allowed is None else allowed
        candidates["logit"] = scores
        return self._draw(candidates)

    def _draw(self, candidates: npt.NDArray[Any]) -> int:
        array = self._api.llama_token_data_array(
            data=candidates.ctypes.data_as(self._api.llama_token_data_p),
            size=len(candidates),
            selected=-1,
            sorted=False,
        )
        self._api.llama_sampler_apply(self._chain, ctypes.byref(array))
        return int(array.data[array.selected].id)

    def close(self) -> None:
        if self._chain is not None:
            self._api.llama_sampler_free(self._chain)
            self._chain = None
