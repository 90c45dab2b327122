"""A tiny model with infill tokens and the embedded model's vocabulary: how many tokens are evaluated does not depend on
weights, so these are random. `python benchmarks/fim_model.py FILE [--no-infill]`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends.embedded import embedded_model

WIDTH, LAYERS = 32, 1
CONTEXT = 32_768
# What the vocabulary has there is never in code; the names are those llama.cpp knows infill tokens by.
NAMES = {
    "<gh_stars>": "<|fim_prefix|>",
    "<issue_start>": "<|fim_suffix|>",
    "<issue_comment>": "<|fim_middle|>",
    "<issue_closed>": "<|fim_pad|>",
    "<repo_name>": "<|repo_name|>",
    "<file_sep>": "<|file_sep|>",
}


def write(path: Path, source: Path, *, infills: bool) -> Path:
    """Raises OSError, ValueError for a `source` that is no GGUF file with such a vocabulary."""
    fields = gguf.GGUFReader(str(source)).fields
    names = NAMES if infills else {}
    tokens = [names.get(token, token) for token in _contents(fields, "tokenizer.ggml.tokens")]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(_contents(fields, "tokenizer.ggml.pre"))
    writer.add_token_list(tokens)
    writer.add_token_types(_contents(fields, "tokenizer.ggml.token_type"))
    writer.add_token_merges(_contents(fields, "tokenizer.ggml.merges"))
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)
    _tensors(writer, len(tokens))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _contents(fields: Any, name: str) -> Any:
    if name not in fields:
        raise ValueError(f"{name} is missing")
    return fields[name].contents()


def _tensors(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    draw = np.random.default_rng(7)

    def weight(rows: int) -> Any:
        return draw.standard_normal((rows, WIDTH), dtype=np.float32) / np.float32(WIDTH**0.5)

    one = np.ones(WIDTH, dtype=np.float32)
    writer.add_tensor("token_embd.weight", weight(vocabulary).astype(np.float16))
    writer.add_tensor("output_norm.weight", one)
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", one)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weight(WIDTH))


def main() -> int:
    embedded = embedded_model()
    if embedded is None:
        print("the embedded model is not installed: its vocabulary is needed", file=sys.stderr)
        return 1
    write(Path(sys.argv[1]), embedded, infills="--no-infill" not in sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
