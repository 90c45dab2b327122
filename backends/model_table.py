"""The local models that are known by a name: data, and which of them suits a machine. Knows no download and no engine.

Repositories and files were looked up in November 2026. Sizes are those of the files, rounded; cache sizes follow from
each model's number of layers and key-value heads.
"""

from __future__ import annotations

from dataclasses import dataclass

WORKING = (
    300_000_000  # beside weights and cache, bytes: 80 MB measured with the embedded model, more for large vocabularies
)
CONTEXT_TOKENS = 4096  # what memory is given for, tokens; the default of the setting `context_tokens`
OTHERS = 1 << 29  # cache for other documents, bytes at most; what backends/llama_worker/context.py asks for
SHARE_OF_MEMORY = 0.5  # an editor, a browser and other language servers need the rest
SHARE_OF_GPU = 0.9
CORES_FOR_1B = 8  # from that many physical cores on a CPU keeps up with 1.5 billion parameters


@dataclass(frozen=True, slots=True)
class Model:
    """One row. `repo` is empty for the embedded model, which comes with the extra `local`."""

    name: str
    repo: str  # on the hub
    file: str
    size: int  # of the file, bytes
    cache: int  # key-value cache of one token at 16 bits, bytes
    licence: str
    family: str  # of completion/prompt/families.py, which guesses the same from `name`
    infills: bool = True
    context: int = CONTEXT_TOKENS  # tokens at most, where that is less than is asked for

    @property
    def memory(self) -> int:
        """What it takes to run, bytes."""
        own = self.cache * min(CONTEXT_TOKENS, self.context)
        return self.size + own + min(own, OTHERS) + WORKING


EMBEDDED = Model(
    "smollm2-135m",
    "",
    "SmolLM2-135M-Instruct.Q4_1.gguf",
    98_000_000,
    23_040,
    "Apache-2.0",
    "smollm2",
    infills=False,
)
# Base models rather than their instruct variants: only these are trained on nothing but code and infilling.
MODELS: tuple[Model, ...] = (
    EMBEDDED,
    Model(
        "qwen2.5-coder-0.5b",
        "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF",
        "qwen2.5-coder-0.5b-q8_0.gguf",
        531_000_000,
        12_288,
        "Apache-2.0",
        "qwen2.5-coder",
    ),
    Model(
        "qwen2.5-coder-1.5b",
        "ggml-org/Qwen2.5-Coder-1.5B-Q8_0-GGUF",
        "qwen2.5-coder-1.5b-q8_0.gguf",
        1_647_000_000,
        28_672,
        "Apache-2.0",
        "qwen2.5-coder",
    ),
    Model(
        "qwen2.5-coder-3b",
        "ggml-org/Qwen2.5-Coder-3B-Q8_0-GGUF",
        "qwen2.5-coder-3b-q8_0.gguf",
        3_285_000_000,
        36_864,
        "Qwen Research (no commercial use)",
        "qwen2.5-coder",
    ),
    Model(
        "qwen2.5-coder-7b",
        "QuantFactory/Qwen2.5-Coder-7B-GGUF",
        "Qwen2.5-Coder-7B.Q4_K_M.gguf",
        4_683_000_000,
        57_344,
        "Apache-2.0",
        "qwen2.5-coder",
    ),
    Model(
        "starcoder2-3b",
        "second-state/StarCoder2-3B-GGUF",
        "starcoder2-3b-Q4_K_M.gguf",
        1_849_000_000,
        30_720,
        "BigCode OpenRAIL-M",
        "starcoder2",
    ),
    Model(
        "deepseek-coder-1.3b",
        "TheBloke/deepseek-coder-1.3b-base-GGUF",
        "deepseek-coder-1.3b-base.Q4_K_M.gguf",
        874_000_000,
        196_608,
        "DeepSeek",
        "deepseek-coder",
    ),
    Model(
        "codegemma-2b",
        "bartowski/codegemma-2b-GGUF",
        "codegemma-2b-Q4_K_M.gguf",
        1_630_000_000,
        18_432,
        "Gemma",
        "codegemma",
    ),
    Model(
        "granite-code-3b",
        "ibm-granite/granite-3b-code-base-2k-GGUF",
        "granite-3b-code-base.Q4_K_M.gguf",
        2_100_000_000,
        327_680,
        "Apache-2.0",
        "granite-code",
        context=2048,
    ),
    Model(
        "mellum-4b",
        "JetBrains/Mellum-4b-base-gguf",
        "mellum-4b-base.Q8_0.gguf",
        4_280_000_000,
        368_640,
        "Apache-2.0",
        "mellum-4b",
    ),
)

BY_NAME: dict[str, Model] = {model.name: model for model in MODELS}

# Best first. One series, so that size alone decides; without the 3B, whose licence forbids commercial use.
_ON_GPU = ("qwen2.5-coder-7b", "qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")
_ON_CPU = ("qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b")


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides about a model. Bytes; `gpu_memory` 0: llama.cpp can use no GPU here; `memory` 0: unknown."""

    memory: int
    cores: int  # physical
    gpu_memory: int = 0


def recommend(machine: Machine) -> Model:
    """The largest model that is fast enough here and leaves room for other programs. The embedded one if none is."""
    for name in _ON_GPU:
        if BY_NAME[name].memory <= machine.gpu_memory * SHARE_OF_GPU:
            return BY_NAME[name]
    for name in _ON_CPU if machine.cores >= CORES_FOR_1B else _ON_CPU[1:]:
        if BY_NAME[name].memory <= machine.memory * SHARE_OF_MEMORY:
            return BY_NAME[name]
    return EMBEDDED
