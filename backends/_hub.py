"""Brings one file from a Hugging Face hub into the hub's own folder. Imports huggingface_hub: see `model_store.pull`.

The library's own download begins anew after an interruption and does not compare checksums, so that the transfer is
done here: by its client, with its addresses, tokens and errors, into its folder. Its parallel protocol (xet) is not
needed: the hub serves every file over plain HTTP as well.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# Else the library asks the hub which programs it should look for on this machine, and tells the hub what it found.
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

import filelock
import httpx2
from huggingface_hub import constants, get_hf_file_metadata, get_session, get_token, hf_hub_url
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined] # documented, not re-exported

from backends._hub_errors import endpoint, passes, told, unwritable
from backends.base import BackendError, ErrorKind, Observer
from backends.model_store import Reference, hub_folder, repo_folder

WAITS_S = (1.0, 2.0, 4.0)  # before the next attempt at a transfer that broke off; anew whenever something has come
_LOCK_S = 1.0
_READ_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLAIN_NAME = re.compile(r"[\w-]{1,128}")  # becomes part of a path


@dataclass(frozen=True, slots=True)
class Remote:
    """What the hub says of a file."""

    commit: str
    etag: str  # SHA-256 of all but very small files
    size: int | None  # bytes; None: unknown


def pull(reference: Reference, observer: Observer, wait: Callable[[float], None] = time.sleep) -> Path:
    """See `model_store.pull`. `wait` takes seconds."""
    if constants.HF_HUB_OFFLINE:
        raise BackendError(
            ErrorKind.SETTINGS, f"{reference} is not here, and HF_HUB_OFFLINE is set: unset it to pull {reference}."
        )
    folder = repo_folder(reference)
    try:
        remote = _look_up(reference)
        blob = folder / "blobs" / remote.etag
        pointer = folder / "snapshots" / remote.commit / reference.file
        with _alone(reference, remote):
            if not (blob.is_file() or pointer.is_file()):
                _download(reference, remote, blob, observer, wait)
            _publish(reference, remote, blob, pointer)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:  # some of them are OSErrors
        raise told(error, reference) from error
    except OSError as error:
        raise unwritable(error, folder) from error
    except UnicodeEncodeError as error:
        raise BackendError(ErrorKind.AUTH, "HF_TOKEN holds characters that no token has.") from error
    except HFValidationError as error:
        raise BackendError(ErrorKind.SETTINGS, f"{reference.repo} is no name of a repository: {error}") from error
    return pointer


def _look_up(reference: Reference) -> Remote:
    url = hf_hub_url(reference.repo, reference.file, revision=reference.revision or None)
    found = get_hf_file_metadata(url)
    if not (found.commit_hash and found.etag):
        raise BackendError(
            ErrorKind.PROTOCOL,
            f"{endpoint()} does not answer as a Hugging Face hub does. Check HF_ENDPOINT, and whether a proxy or a"
            " login page stands in between.",
        )
    for name in (found.commit_hash, found.etag):
        if not _PLAIN_NAME.fullmatch(name):
            raise BackendError(ErrorKind.PROTOCOL, f"{endpoint()} names the file's version {name!r}: that is none.")
    return Remote(found.commit_hash, found.etag, found.size)


@contextlib.contextmanager
def _alone(reference: Reference, remote: Remote) -> Iterator[None]:
    """Two of us, or one of us and another program of the hub's, do not write one file."""
    path = hub_folder() / ".locks" / repo_folder(reference).name / f"{remote.etag}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=_LOCK_S)
    except filelock.Timeout as error:
        raise BackendError(ErrorKind.OVERLOADED, f"{reference} is being pulled by another program.") from error
    except NotImplementedError:  # a file system without locks
        pass
    try:
        yield
    finally:
        lock.release()


class _Partial:
    """What has come of a file so far, and the checksum of that. Opened where an earlier attempt stopped."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.hash = hashlib.sha256()
        self.size = 0
        file.seek(0)
        while data := file.read(_READ_BYTES):
            self._count(data)

    def _count(self, data: bytes) -> None:
        self.hash.update(data)
        self.size += len(data)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._count(data)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.hash, self.size = hashlib.sha256(), 0

    def close(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def _download(
    reference: Reference, remote: Remote, blob: Path, observer: Observer, wait: Callable[[float], None]
) -> None:
    blob.parent.mkdir(parents=True, exist_ok=True)
    path = blob.with_name(f"{blob.name}.incomplete")
    size = f" ({remote.size / 1e6:,.0f} MB)" if remote.size else ""
    key, title = f"pull:{reference}", f"Downloading {reference}{size}"
    observer.progress(key, title, 0.0 if remote.size else None)
    try:
        with path.open("a+b") as file:
            partial = _Partial(file)
            if remote.size is not None:
                if partial.size > remote.size:
                    partial.restart()
                _check_room(blob.parent, remote.size - partial.size)
            _transfer(reference, remote, partial, wait, lambda fraction: observer.progress(key, title, fraction))
            partial.close()
    finally:
        observer.progress(key, title, 1.0, done=True)
    if not _SHA256.fullmatch(remote.etag):
        observer.notice(f"{key}:checksum", f"{endpoint()} gives no checksum of {reference.file}: it was not checked.")
    elif partial.hash.hexdigest() != remote.etag:
        path.unlink()
        raise BackendError(
            ErrorKind.BAD_MODEL,
            f"{reference.file} came damaged: its checksum is not the one the hub gives. It was removed; pull it again."
            " If that does not help, a proxy or mirror in between changes it.",
        )
    os.replace(path, blob)


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise unwritable(OSError(errno.ENOSPC, ""), folder, needed - free)


def _transfer(
    reference: Reference,
    remote: Remote,
    partial: _Partial,
    wait: Callable[[float], None],
    tell: Callable[[float | None], None],
) -> None:
    """Until all of it is here. Raises httpx2.HTTPError when nothing more comes."""
    failures = 0
    while remote.size is None or partial.size < remote.size:
        before = partial.size
        try:
            with contextlib.closing(_stream(reference, remote, partial.size, partial.restart)) as stream:
                for data in stream:
                    partial.write(data)
                    tell(min(partial.size / remote.size, 1.0) if remote.size else None)
                    if remote.size is not None and partial.size > remote.size:
                        return  # the checksum will be wrong
            if remote.size is None:
                return
            problem: Exception = httpx2.RemoteProtocolError("it ended early")
        except httpx2.HTTPError as error:
            if not passes(error):
                raise
            problem = error
        failures = 1 if partial.size > before else failures + 1
        if partial.size < (remote.size or partial.size + 1):
            if failures > len(WAITS_S):
                raise problem
            wait(WAITS_S[failures - 1])


def _stream(
    reference: Reference, remote: Remote, start: int, restart: Callable[[], None]
) -> Generator[bytes, None, None]:
    """The file from byte `start` on; calls `restart` if the server begins at 0 all the same.

    The address names the commit, so that a file which changes on the hub meanwhile is not mixed with its successor. It
    is asked for anew each time: the address of the storage it leads to is good for an hour or so.
    """
    url = hf_hub_url(reference.repo, reference.file, revision=remote.commit)
    headers = {"Accept-Encoding": "identity"}
    if token := None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token():
        headers["Authorization"] = f"Bearer {token}"  # the client drops it when it is sent on to another host
    if start:
        headers["Range"] = f"bytes={start}-"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    with get_session().stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
        if response.status_code == 416:  # the file has another size than what is here came from
            restart()
            raise httpx2.RemoteProtocolError("there is no such part of the file")
        hf_raise_for_status(response)
        if start and not _continues(response, start):
            restart()
        yield from response.iter_bytes()


def _continues(response: httpx2.Response, start: int) -> bool:
    return response.status_code == 206 and response.headers.get("content-range", "").startswith(f"bytes {start}-")


def _publish(reference: Reference, remote: Remote, blob: Path, pointer: Path) -> None:
    """Give the file its name, as the hub's folder has it: a link to it, or itself where no link can be made."""
    if not pointer.is_file():
        pointer.parent.mkdir(parents=True, exist_ok=True)
        pointer.unlink(missing_ok=True)  # a link that leads nowhere
        _name(blob, pointer)
    revision = reference.revision or "main"
    if revision != remote.commit:
        ref = repo_folder(reference) / "refs" / revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        part = ref.with_name(f"{ref.name}.{os.getpid()}.tmp")
        part.write_text(remote.commit, encoding="utf-8")
        os.replace(part, ref)


def _name(blob: Path, pointer: Path) -> None:
    with contextlib.suppress(OSError, NotImplementedError):  # Windows wants a right for it
        if not constants.HF_HUB_DISABLE_SYMLINKS:
            pointer.symlink_to(os.path.relpath(blob, pointer.parent))
            return
    try:
        os.link(blob, pointer)
    except (OSError, NotImplementedError):
        os.replace(blob, pointer)
