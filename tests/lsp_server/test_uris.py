"""URIs of real editors, and malformed ones."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lsp_server.uris import Root, from_path, relative_to_root, to_path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///home/me/x.py", "/home/me/x.py"),
        ("FILE:///home/me/x.py", "/home/me/x.py"),
        ("file:/home/me/x.py", "/home/me/x.py"),
        ("file://localhost/home/me/x.py", "/home/me/x.py"),
        ("file:///home/me/a%20b%23c%25.py", "/home/me/a b#c%.py"),
        ("file:///home/%C3%BC/%F0%9F%98%80.py", "/home/ü/😀.py"),
        ("file:///home/ü/x.py", "/home/ü/x.py"),
        ("file:///tmp/%FF.py", "/tmp/\udcff.py"),  # not UTF-8: as os.fsdecode has it
        ("file:///", "/"),
        ("file:///c%3A/dir/x.py", "c:\\dir\\x.py"),
        ("file:///C:/dir/x.py", "C:\\dir\\x.py"),
        ("file:///c:", "c:\\"),
        ("file://C:/dir/x.py", "C:\\dir\\x.py"),
        ("file:///cd:/x", "/cd:/x"),
        ("file://server/share/x%20y.py", "\\\\server\\share\\x y.py"),
        ("file://server/c:/x.py", "\\\\server\\c:\\x.py"),
        ("file:///a/x.py?q#f", "/a/x.py"),
        ("vscode-notebook-cell:/path/nb.ipynb#W0", "/path/nb.ipynb"),
        ("vscode-notebook-cell:/c%3A/path/nb.ipynb#W0sZmlsZQ%3D%3D", "c:\\path\\nb.ipynb"),
        ("vscode-notebook-cell://ssh-remote%2Bhost/path/nb.ipynb#W0", "/path/nb.ipynb"),
    ],
)
def test_paths(uri: str, path: str) -> None:
    assert to_path(uri) == path


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "untitled:Untitled-1",
        "untitled:/home/me/new.py",
        "vscode-notebook-cell:Untitled-1.ipynb#W0",
        "git:/home/me/x.py",
        "https://host/x.py",
        "file:",
        "file:x.py",
        "file://server",
        "file:///a%00b",
        "/home/me/x.py",
        "c:\\dir\\x.py",
        ":",
    ],
)
def test_no_path(uri: str) -> None:
    assert to_path(uri) is None
    assert relative_to_root(uri, [Root("file:///", "root")]) is None


@given(st.text(max_size=30) | st.text("/:%#?[]@.cC\\+0aé\ud800", max_size=20).map("file:".__add__))
@example("file://[::1/x")
@example("file://\u2100/x")  # urllib refuses both of these
@example("file:///%")
@example("file:///%\ud800")
def test_malformed_uris_never_raise(uri: str) -> None:
    path = to_path(uri)
    assert path is None or isinstance(path, str)
    for roots in ([Root(uri, "x")], [Root("file:///", "root")]):
        found = relative_to_root(uri, roots)
        if found is not None:
            found[1].encode()
            assert ".." not in found[1].split("/")


ROOTS = [
    Root("file:///work", "outer"),
    Root("file:///work/libs/inner/", "inner"),
    Root("file:///work/libs"),
    Root("file:///c%3A/Proj", "drive"),
    Root("file://Server/share/p", "unc"),
    Root("untitled:nonsense", "none"),
]


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("file:///work/a/b.py", ("outer", "a/b.py")),
        ("file:///work/libs/inner/b%20c.py", ("inner", "b c.py")),
        ("file:///work/libs/other/b.py", ("libs", "other/b.py")),
        ("file:///work/libs/../b.py", ("outer", "b.py")),
        ("file:///work//a/./b.py", ("outer", "a/b.py")),
        ("file:///work/%FF.py", ("outer", "?.py")),
        ("file:///workshop/b.py", None),
        ("file:///work/../etc/passwd", None),
        ("file:///work", None),
        ("file:///Work/b.py", None),
        ("file:///C:/Proj/src/x.py", ("drive", "src/x.py")),
        ("file:///c:/Proj/X.py", ("drive", "X.py")),
        ("file:///d:/Proj/X.py", None),
        ("file://server/share/p/x.py", ("unc", "x.py")),
        ("file:///share/p/x.py", None),
        ("vscode-notebook-cell:/work/nb.ipynb#W0", ("outer", "nb.ipynb")),
        ("untitled:Untitled-1", None),
    ],
)
def test_innermost_root(uri: str, found: tuple[str, str] | None) -> None:
    for roots in (ROOTS, ROOTS[::-1]):
        name_and_path = relative_to_root(uri, roots)
        assert (name_and_path and name_and_path[:2]) == found


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/home/me/a b#c%.py", "file:///home/me/a%20b%23c%25.py"),
        ("/home/ü.py", "file:///home/%C3%BC.py"),
        ("/", "file:///"),
        ("//a/b", "file:////a/b"),
        ("/tmp/\udcff", "file:///tmp/%FF"),
        ("C:\\dir\\x y.py", "file:///C:/dir/x%20y.py"),
        ("c:/dir/x.py", "file:///c:/dir/x.py"),
        ("\\\\server\\share\\x.py", "file://server/share/x.py"),
    ],
)
def test_from_path(path: str, uri: str) -> None:
    assert from_path(path) == uri
    assert to_path(uri) == (path.replace("/", "\\") if path.startswith("c:") else path)


@pytest.mark.parametrize("path", ["", "x.py", "./x.py", "c:x.py", "/\ud800"])
def test_from_path_refuses(path: str) -> None:
    with pytest.raises(ValueError):
        from_path(path)
