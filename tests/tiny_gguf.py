"""Tiny llama models for tests, written with the `gguf` package: a byte-level vocabulary, chosen special tokens.

A *scripted* model follows each token with a chosen one, whatever came before: its answers are known. A *random* model's
answers depend on the whole prompt: two equal answers tell that the key-value cache was right. It never ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
import numpy.typing as npt

EOT = "<|endoftext|>"
FIM = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
MERGES = ("Ġ Ġ", "ĠĠ ĠĠ", "Ċ ĠĠĠĠ", "r e", "re t", "u r", "ur n", "ret urn", "Ġ return")
CONTEXT = 4096  # n_ctx_train


def byte_characters() -> list[str]:
    """The characters that stand for the bytes 0 to 255 in byte-level vocabularies (as GPT-2 defined them)."""
    shown = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte) if byte in shown else chr(next(others)) for byte in range(256)]


def vocabulary(fim: bool) -> list[str]:
    merged = [merge.replace(" ", "") for merge in MERGES]
    return [*byte_characters(), *merged, EOT, *(FIM if fim else FIM[4:])]


def ids(fim: bool = True) -> dict[str, int]:
    return {text: index for index, text in enumerate(vocabulary(fim))}


Follows = Mapping[str, str | Mapping[str, float]]


def scripted(path: Path, follows: Follows, *, fim: bool = True, bos: bool = False) -> Path:
    """`follows` maps a token as the vocabulary spells it to the next one, or to several with their weights.

    The end of text follows all others. A difference of 0.1 between two weights is one of about 1.7 between logits.
    """
    tokens = vocabulary(fim)
    embedding, output = _script(tokens, follows, EOT)
    return _write(path, tokens, embedding, output, layers=1, scale=0.0, bos=bos)


def _script(tokens: list[str], follows: Follows, end: str) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    number = {token: index for index, token in enumerate(tokens)}
    width = -(-len(tokens) // 32) * 32
    output = np.zeros((len(tokens), width), dtype=np.float32)
    for index, token in enumerate(tokens):
        following = follows.get(token, end)
        for name, weight in ({following: 1.0} if isinstance(following, str) else following).items():
            output[number[name], index] = weight
    return np.eye(len(tokens), width, dtype=np.float32), output


def random(path: Path, *, fim: bool = True, width: int = 64, layers: int = 2) -> Path:
    tokens = vocabulary(fim)
    generator = np.random.default_rng(7)
    embedding = generator.standard_normal((len(tokens), width), dtype=np.float32)
    output = generator.standard_normal((len(tokens), width), dtype=np.float32)
    output[tokens.index(EOT) :] = 0  # never the most likely
    return _write(path, tokens, embedding, output, layers=layers, scale=1.0, bos=False)


SPM_WORDS = ("▁", "▁im", "▁import", "▁x", "im", "po", "rt", "import", "se", "lf", "self", "▁self")


def sentence_pieces() -> list[str]:
    """A SentencePiece vocabulary: control tokens, all bytes, printable characters, some words, infill tokens."""
    characters = [chr(code) for code in range(0x21, 0x7F)]
    special = ("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")
    return ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *characters, *SPM_WORDS, *special]


def sentence_piece(path: Path, follows: Mapping[str, str], *, bos: bool = True) -> Path:
    """A scripted model of such a vocabulary; `</s>` follows all that `follows` does not name."""
    tokens = sentence_pieces()
    embedding, output = _script(tokens, follows, "</s>")

    def add_vocabulary(writer: gguf.GGUFWriter) -> None:
        kinds = gguf.TokenType
        first, words = 3 + 256, len(tokens) - 4
        types = [kinds.UNKNOWN, kinds.CONTROL, kinds.CONTROL, *[kinds.BYTE] * 256]
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_types([*types, *[kinds.NORMAL] * (words - first), *[kinds.CONTROL] * 4])
        writer.add_token_scores([0.0] * first + [float(len(token)) for token in tokens[first:words]] + [0.0] * 4)
        for name, token in (("unk", 0), ("bos", 1), ("eos", 2)):
            getattr(writer, f"add_{name}_token_id")(token)
        writer.add_add_bos_token(bos)

    return _write(path, tokens, embedding, output, layers=1, scale=0.0, add_vocabulary=add_vocabulary)


def _write(
    path: Path,
    tokens: list[str],
    embedding: npt.NDArray[np.float32],
    output: npt.NDArray[np.float32],
    *,
    layers: int,
    scale: float,
    bos: bool = False,
    add_vocabulary: Callable[[gguf.GGUFWriter], None] | None = None,
) -> Path:
    width = embedding.shape[1]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(width // 32)
    writer.add_head_count_kv(width // 32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(32)
    writer.add_vocab_size(len(tokens))
    if add_vocabulary:
        add_vocabulary(writer)
    else:
        _add_vocabulary(writer, tokens, bos)
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(width, dtype=np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(layers):
        _add_layer(writer, layer, width, scale)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, tokens: list[str], bos: bool) -> None:
    special = tokens.index(EOT)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    types = [gguf.TokenType.NORMAL] * special + [gguf.TokenType.CONTROL] * (len(tokens) - special)
    writer.add_token_types(types)
    writer.add_token_merges(list(MERGES))
    writer.add_bos_token_id(special)
    writer.add_eos_token_id(special)
    writer.add_add_bos_token(bos)


def _add_layer(writer: gguf.GGUFWriter, layer: int, width: int, scale: float) -> None:
    generator = np.random.default_rng(layer)

    def weight(rows: int, columns: int, factor: float = 1.0) -> npt.NDArray[np.float32]:
        return generator.standard_normal((rows, columns), dtype=np.float32) * np.float32(factor / columns**0.5)

    one = np.ones(width, dtype=np.float32)
    tensors = {
        "attn_norm": one,
        "attn_q": weight(width, width),
        "attn_k": weight(width, width),
        "attn_v": weight(width, width),
        "attn_output": weight(width, width, scale),
        "ffn_norm": one,
        "ffn_gate": weight(2 * width, width),
        "ffn_up": weight(2 * width, width),
        "ffn_down": weight(width, 2 * width, scale),
    }
    for name, tensor in tensors.items():
        writer.add_tensor(f"blk.{layer}.{name}.weight", tensor)
