"""Commands in the docs that reach out to a hub. They are run against one on loopback, which has these files."""

from __future__ import annotations

from backends.model_table import BY_NAME

CONTENT = b"GGUF" + bytes(100_000)
FILES = {f"{BY_NAME[name].repo}/{BY_NAME[name].file}": CONTENT for name in ("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b")}
LIST, PATH = "midfill models list", "midfill models path qwen2.5-coder-1.5b"
PULL = "midfill models pull qwen2.5-coder-1.5b"
PULL_FILE = "midfill models pull ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF:qwen2.5-coder-0.5b-q8_0.gguf"
HUB_COMMANDS = (LIST, PULL, PATH, PULL_FILE)
