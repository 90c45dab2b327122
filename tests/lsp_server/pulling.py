"""Runs `midfill models` against a hub on loopback, in a home of its own."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

import pytest

from backends.model_store import Reference, pulled
from tests.lsp_server.commandline import Done, midfill
from tests.services.hub import Hub

REPO, FILE = "me/Tiny-Coder-GGUF", "tiny-coder.Q8_0.gguf"
NAME = f"{REPO}:{FILE}"
CONTENT = b"GGUF" + random.Random(1).randbytes(3_000_000)
TOKEN = "hf_secret-token-of-the-test"
HALF = 1_500_000


class Home:
    """A user's folder, whose environment leads to `hub`."""

    def __init__(self, path: Path, hub: Hub) -> None:
        self.path, self.hub = path, hub
        self.cache = path / "hf" / "hub" / f"models--{REPO.replace('/', '--')}"
        self.partial = self.cache / "blobs" / f"{hashlib.sha256(CONTENT).hexdigest()}.incomplete"

    def env(self, **more: str) -> dict[str, str]:
        """None of the runner's own HF_ variables."""
        own = {name: "" for name in os.environ if name.startswith(("HF_", "HUGGING"))}
        return {**own, "HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.path / "hf"), "NO_PROXY": "*", **more}

    def run(self, *arguments: str, **more: str) -> Done:
        return midfill("models", *arguments, cwd=self.path, env=self.env(**more))

    def pull(self, model: str = NAME, **more: str) -> Done:
        return self.run("pull", model, **more)

    def found(self) -> Path | None:
        """What `midfill models path` prints."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in self.env().items():
                patch.setenv(name, value)
            return pulled(Reference(REPO, FILE))

    def files(self) -> set[str]:
        """Everything under the hub's folder that is neither a lock nor a note of which commit a branch is at."""
        files = (path.relative_to(self.cache) for path in self.cache.rglob("*") if not path.is_dir())
        return {path.as_posix() for path in files if path.parts[0] != "refs"}
