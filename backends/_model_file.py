"""Which file a local model's settings mean, and checks of it and of this machine. Knows no llama.cpp."""

from __future__ import annotations

import os
from pathlib import Path

from backends.base import BackendError, ErrorKind
from backends.embedded import DISTRIBUTION, INSTALL, embedded_model
from backends.model_store import pulled, reference_of
from backends.model_table import EMBEDDED, MODELS
from backends.settings import BackendSettings

MAGIC = b"GGUF"


def model_name(settings: BackendSettings) -> str:
    """What it is called, and its prompt family guessed from; empty: the embedded model, which is not installed."""
    model = settings.model
    if settings.model_path:
        return model or Path(settings.model_path).stem
    if model in ("", EMBEDDED.name):
        return EMBEDDED.name if embedded_model() else ""
    reference = reference_of(model)
    if reference is None:
        return Path(model).stem if _is_path(model) else model
    return reference.name or Path(reference.file).stem


def model_place(settings: BackendSettings) -> str:
    """The path as the user wrote it, or where the file lies; a name that stands for no file here is left as it is."""
    if settings.model_path or settings.model not in ("", EMBEDDED.name):
        return settings.model_path or str(_pulled(settings.model) or settings.model)
    return str(embedded_model() or "")


def model_file(settings: BackendSettings) -> Path:
    """The absolute path of a file that looks like a model: `model_path`, or what `model` means.

    Raises BackendError: SETTINGS (with the command that brings the file here, if there is one), BAD_MODEL.
    """
    model = settings.model
    if settings.model_path:
        return _checked(settings.model_path)
    if model in ("", EMBEDDED.name):
        embedded = embedded_model()
        if embedded is None:
            raise BackendError(
                ErrorKind.SETTINGS, f"No model is set and the embedded model ({DISTRIBUTION}) is missing. {INSTALL}"
            )
        return embedded
    if (reference := reference_of(model)) is not None:
        path = pulled(reference)
        if path is None:
            raise BackendError(ErrorKind.SETTINGS, f"The model {reference} is not here. Run `{reference.pull}`.")
        return _checked(str(path))
    if not _is_path(model):
        raise BackendError(ErrorKind.SETTINGS, unknown(model))
    if not Path(model).expanduser().is_absolute():
        message = f"model: {model} must be an absolute path, or begin with ~: settings are read in many folders."
        raise BackendError(ErrorKind.SETTINGS, message)
    return _checked(model)


def unknown(name: str) -> str:
    """What to say of a name that is none."""
    names = ", ".join(model.name for model in MODELS)
    return (
        f"There is no model {name!r}. A model is one of {names}; or owner/repository:file.gguf of a Hugging Face hub;"
        " or the path of a GGUF file."
    )


def _pulled(model: str) -> Path | None:
    reference = reference_of(model)
    return pulled(reference) if reference else None


def _is_path(model: str) -> bool:
    return model.lower().endswith(".gguf") or "/" in model or "\\" in model


def _checked(shown: str) -> Path:
    path = Path(shown).expanduser().absolute()
    if not path.is_file():
        raise BackendError(ErrorKind.SETTINGS, f"There is no model file {shown}.")
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise BackendError(ErrorKind.BAD_MODEL, f"{shown} cannot be read: {error.strerror}.") from error
    if magic != MAGIC:
        raise BackendError(ErrorKind.BAD_MODEL, f"{shown} is not a GGUF file.")
    return path


def check_memory(path: Path, shown: str) -> None:
    """Refuse a model that is larger than the memory that is free: loading it would have the system kill processes.

    Raises BackendError(BAD_MODEL). Without psutil nothing is checked.
    """
    try:
        import psutil
    except ImportError:
        return
    size, free = path.stat().st_size, int(psutil.virtual_memory().available)
    if size > free:
        raise BackendError(
            ErrorKind.BAD_MODEL,
            f"{shown} is too large: it needs {size / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free.",
        )


def physical_cores() -> int:
    """Cores this process may use; two hardware threads of one core count once, as they do not help llama.cpp."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        import psutil
    except ImportError:
        return usable
    return min(psutil.cpu_count(logical=False) or usable, usable)
