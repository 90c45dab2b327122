"""How a failed pull is told: what happened and what to do. Tells no token; knows nothing of how files are brought."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import httpx2
from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from backends.base import BackendError, ErrorKind
from backends.model_store import Reference

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
KEPT = "What has come is kept: the same command goes on from there."
_RESET = re.compile(r";\s*t\s*=\s*(\d{1,6})")  # seconds, in the header that the hub sends with 429
_GOES_BY_ITSELF = frozenset({500, 502, 503, 504})


def endpoint() -> str:
    return str(constants.ENDPOINT)


def passes(error: Exception) -> bool:
    """Whether trying again in a moment may help."""
    if isinstance(error, HfHubHTTPError):
        return error.response.status_code in _GOES_BY_ITSELF
    return isinstance(error, httpx2.TransportError) and not isinstance(
        error, httpx2.ProxyError | httpx2.UnsupportedProtocol
    )


def told(error: httpx2.HTTPError | httpx2.InvalidURL, reference: Reference) -> BackendError:
    """What to say of whatever came of a request."""
    if isinstance(error, HfHubHTTPError):
        return _refused(error, reference)
    if isinstance(error, httpx2.TimeoutException):
        return BackendError(
            ErrorKind.TIMEOUT, f"{endpoint()} did not answer in time. {KEPT} HF_HUB_DOWNLOAD_TIMEOUT says how long."
        )
    if isinstance(error, httpx2.ProxyError):
        return BackendError(ErrorKind.UNREACHABLE, f"The proxy (HTTPS_PROXY) refused or failed: {error}")
    if isinstance(error, httpx2.ConnectError | httpx2.UnsupportedProtocol | httpx2.InvalidURL):
        return BackendError(
            ErrorKind.UNREACHABLE,
            f"{endpoint()} cannot be reached ({error}). Check the connection and HTTPS_PROXY, or set HF_ENDPOINT to a"
            f" mirror. {KEPT}",
        )
    return BackendError(ErrorKind.UNREACHABLE, f"The connection was lost ({error}). {KEPT}")


def _refused(error: HfHubHTTPError, reference: Reference) -> BackendError:
    status, page = error.response.status_code, f"{endpoint()}/{reference.repo}"
    token = get_token() is not None
    if isinstance(error, GatedRepoError):  # a RepositoryNotFoundError as well
        accept = "Accept its licence there and set HF_TOKEN to a token of your account"
        how = "The account of your token has not accepted its licence, or was not granted access" if token else accept
        return BackendError(ErrorKind.AUTH, f"{reference.repo} is gated. {how}. See {page}", status=status)
    if isinstance(error, RevisionNotFoundError):
        return _missing(f"{reference.repo} has no revision {reference.revision or 'main'}. See {page}", status)
    if isinstance(error, RemoteEntryNotFoundError):
        return _missing(f"{reference.repo} has no file {reference.file}. See {page}/tree/main", status)
    if isinstance(error, RepositoryNotFoundError) or status == 404:
        private = "your token does not open it" if token else "it is private and HF_TOKEN is not set"
        return _missing(f"There is no repository {reference.repo} at {endpoint()}, or {private}.", status)
    if status == 401:
        how = "HF_TOKEN was not accepted: it may have ended" if token else "it wants a token, set HF_TOKEN"
        return BackendError(ErrorKind.AUTH, f"{endpoint()} refused {reference.repo} (401): {how}.", status=status)
    if status == 429:
        return _too_many(error, token=token)
    words = f"{endpoint()} answered {status}"
    if status >= 500:
        return BackendError(ErrorKind.OVERLOADED, f"{words}. Try again later. {KEPT}", status=status)
    if status == 403:
        message = f"{endpoint()} refused {reference.repo} (403). See {page} for what it asks of you."
        return BackendError(ErrorKind.AUTH, message, status=status)
    return BackendError(ErrorKind.PROTOCOL, f"{words} for {reference.repo}. See {page}", status=status)


def _missing(message: str, status: int) -> BackendError:
    return BackendError(ErrorKind.MODEL_NOT_FOUND, message, status=status)


def _too_many(error: HfHubHTTPError, *, token: bool) -> BackendError:
    headers = error.response.headers
    found = re.fullmatch(r"(\d{1,6})", headers.get("retry-after", "")) or _RESET.search(headers.get("ratelimit", ""))
    seconds = float(found[1]) if found else None
    when = "in a few minutes" if seconds is None else f"in {seconds:g} s"
    more = "" if token else " With HF_TOKEN set more is allowed."
    return BackendError(
        ErrorKind.RATE_LIMITED,
        f"{endpoint()} has had too many requests from here (429). Try again {when}.{more} {KEPT}",
        status=429,
        retry_after_s=seconds,
    )


def unwritable(error: OSError, folder: Path, missing_bytes: int | None = None) -> BackendError:
    """The disk is full, or a file or folder cannot be used."""
    if error.errno in _FULL:
        size = f", {missing_bytes / 1e9:.1f} GB more are needed" if missing_bytes else ""
        return BackendError(
            ErrorKind.BAD_MODEL,
            f"There is no room in {folder}{size}. Make room, or set HF_HOME to a folder on another disk. {KEPT}",
        )
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else folder
    own = where.is_relative_to(constants.HF_HOME) or where.is_relative_to(folder)
    hint = " Set HF_HOME to a folder that can be written to." if own else ""
    return BackendError(ErrorKind.SETTINGS, f"{where}: {error.strerror or error}.{hint}")
