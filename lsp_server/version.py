"""The version that is installed."""

from __future__ import annotations

DISTRIBUTION = "midfill"


def version() -> str:
    """As the package's metadata has it; "0" in a checkout that is not installed."""
    import importlib.metadata

    try:
        return importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return "0"
