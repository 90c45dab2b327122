"""Document URIs and the paths they stand for, decided from the form of the URI alone.

Must not touch the file system, nor depend on the system it runs on.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)", re.DOTALL)  # RFC 3986, appendix B
_DRIVE = re.compile(r"/?([A-Za-z]:)(?=/|$)")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:[\\/]")


@dataclass(frozen=True, slots=True)
class Root:
    """A workspace folder. Without a name it is called as its last directory."""

    uri: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Location:
    volume: str  # "" on POSIX, "c:" or "//server" on Windows, as written
    path: str  # begins with "/"

    def parts(self) -> tuple[str, ...]:
        """What two locations are compared by: names of drives and servers have no case."""
        normal = posixpath.normpath("/" + self.path.lstrip("/"))  # also takes "." and ".." out
        return (self.volume.lower(), *(part for part in normal.split("/") if part))


def to_path(uri: str) -> str | None:
    """The path as the system the URI comes from writes it: `/a/b`, `C:\\a\\b`, `\\\\server\\share\\a`.

    None for a URI that names no file of a file system (`untitled:`, other schemes, malformed). A notebook cell has the
    path of its notebook. Bytes that are not UTF-8 come as Python's file functions take them (surrogateescape).
    """
    location = _location(uri)
    if location is None:
        return None
    whole = location.volume + location.path
    return whole.replace("/", "\\") if location.volume else whole


def relative_to_root(uri: str, roots: Iterable[Root]) -> tuple[str, str, str | None] | None:
    """(name, path below it with `/`, `to_path` of it) of the innermost root that holds the document, or None."""
    location = _location(uri)
    if location is None:
        return None
    parts = location.parts()
    best: tuple[int, str, str] | None = None
    for root in roots:
        place = _location(root.uri)
        if place is None:
            continue
        above = place.parts()
        if len(above) < len(parts) and parts[: len(above)] == above and (best is None or len(above) > best[0]):
            best = len(above), root.name or above[-1], root.uri
    if best is None:
        return None
    # goes into prompts: must be encodable
    return best[1], "/".join(parts[best[0] :]).encode("utf-8", "replace").decode(), to_path(best[2])


def from_path(path: str) -> str:
    """The `file:` URI of an absolute path, Windows or POSIX by its form.

    Raises ValueError for a path that is not absolute or cannot be written as bytes.
    """
    if _WINDOWS_PATH.match(path):
        return "file:///" + path[:2] + _quoted(path[2:].replace("\\", "/"))
    if path.startswith("\\\\"):
        return "file:" + _quoted(path.replace("\\", "/"))
    if path.startswith("/"):
        return "file://" + _quoted(path)
    raise ValueError("a document's path must be absolute")


def _quoted(path: str) -> str:
    return quote(path, errors="surrogateescape")


def _location(uri: str) -> _Location | None:
    match = _URI.match(uri)
    if match is None:
        return None
    scheme = match[1].lower()
    if scheme not in ("file", "vscode-notebook-cell"):
        return None
    server, path = (unquote(part or "", errors="surrogateescape") for part in match.group(2, 3))
    if server.lower() == "localhost" or "+" in server:  # "ssh-remote+host" of a cell: the server runs on that host
        server = ""
    if _DRIVE.fullmatch(server):  # file://C:/x, one slash too few
        server, path = "", f"/{server}{path}"
    drive = _DRIVE.match(path)
    if not server and drive:
        volume, path = drive[1], path[drive.end() :] or "/"
    else:
        volume = f"//{server}" if server else ""
    if not path.startswith("/") or "\0" in path + volume:
        return None
    return _Location(volume, path)
