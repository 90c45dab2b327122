"""Model files that were pulled from a Hugging Face hub: what they are called, where they lie, how one is brought here.

The folder is the one of huggingface_hub and of what is built on it, so that a file is on a disk once. The library is
imported only to pull.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from backends.base import BackendError, ErrorKind, Observer
from backends.model_table import BY_NAME

LIBRARY = "huggingface-hub"
_REFERENCE = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+):(?P<file>[^:@\\]+\.gguf)(?:@(?P<revision>[\w./-]+))?",
    re.IGNORECASE | re.ASCII,
)
_SPLIT = re.compile(r"-\d{5}-of-\d{5}\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reference:
    """One file of one repository. `revision` is a branch, tag or commit; empty: the main branch."""

    repo: str
    file: str  # forward slashes
    revision: str = ""
    name: str = ""  # in the table of models; empty: none

    def __str__(self) -> str:
        """As it is written on a command line and in the settings."""
        return self.name or f"{self.repo}:{self.file}" + (f"@{self.revision}" if self.revision else "")

    @property
    def pull(self) -> str:
        """The command that brings it here."""
        return f"midfill models pull {self}"


def reference_of(text: str) -> Reference | None:
    """What `NAME` or `owner/repository:file.gguf[@revision]` stands for; None: it is neither."""
    if (model := BY_NAME.get(text)) and model.repo:
        return Reference(model.repo, model.file, name=model.name)
    found = _REFERENCE.fullmatch(text)
    if found is None:
        return None
    file, revision = found["file"], found["revision"] or ""
    if any(part in ("", ".", "..") for part in (*file.split("/"), *(revision.split("/") if revision else ()))):
        return None
    return Reference(found["repo"], file, revision)


def hub_folder() -> Path:
    """Where huggingface_hub keeps files, by the variables it documents."""
    environ = os.environ
    home = environ.get("HF_HOME") or os.path.join(environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    folder = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or os.path.join(home, "hub")
    return Path(os.path.expandvars(folder)).expanduser().absolute()


def repo_folder(reference: Reference) -> Path:
    return hub_folder() / "--".join(["models", *reference.repo.split("/")])


def pulled(reference: Reference) -> Path | None:
    """The whole file, if it is here. Asks nobody. A file of an older main branch counts, the newest first."""
    folder = repo_folder(reference)
    revision = reference.revision or "main"
    try:
        commits = [(folder / "refs" / revision).read_text(encoding="utf-8").strip()]
    except (OSError, ValueError):
        commits = [revision]
    if not reference.revision:
        commits += [snapshot.name for snapshot in sorted((folder / "snapshots").glob("*"), key=_age)]
    for commit in commits:
        path = folder / "snapshots" / commit / reference.file
        if commit and path.is_file():
            return path
    return None


def _age(path: Path) -> float:
    return -path.stat().st_mtime


def all_pulled() -> dict[Reference, Path]:
    """Every GGUF file in the hub's folder, by whatever program it came; those of the table under their names."""
    named = {(model.repo, model.file): model.name for model in BY_NAME.values()}
    found = {}
    for folder in sorted(hub_folder().glob("models--*--*")):
        repo = folder.name.removeprefix("models--").replace("--", "/", 1)
        for snapshot in sorted((folder / "snapshots").glob("*"), key=_age, reverse=True):  # newer ones stay
            for path in sorted(snapshot.rglob("*.gguf")):
                file = path.relative_to(snapshot).as_posix()
                if path.is_file():
                    found[Reference(repo, file, name=named.get((repo, file), ""))] = path
    return found


def pull(reference: Reference, observer: Observer) -> Path:
    """Bring a file here, going on where an earlier attempt stopped. Blocks; nothing calls it unless the user asks.

    Raises BackendError: SETTINGS, AUTH, MODEL_NOT_FOUND, RATE_LIMITED, OVERLOADED, UNREACHABLE, TIMEOUT, PROTOCOL,
    BAD_MODEL (damaged, or no room for it). A KeyboardInterrupt leaves what has come for the next time.
    """
    if path := pulled(reference):
        return path
    if _SPLIT.search(reference.file):
        raise BackendError(
            ErrorKind.SETTINGS, f"{reference.file} is one part of a model; choose a file that holds all of it."
        )
    try:
        from backends import _hub
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("huggingface_hub", "httpx2", "filelock"):
            raise
        raise BackendError(
            ErrorKind.SETTINGS,
            f'Pulling needs {LIBRARY}. In a checkout of midfill run `pip install ".[local]"`, or run'
            f" `pip install {LIBRARY}` with the pip of the environment midfill runs in.",
        ) from missing
    except ValueError as error:  # it reads its variables when it is imported
        raise BackendError(
            ErrorKind.SETTINGS, f"A variable HF_… has a value that {LIBRARY} does not take: {error}"
        ) from error
    return _hub.pull(reference, observer)
