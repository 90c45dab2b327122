from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path, PureWindowsPath

import pytest

from lsp_server.cli import run
from lsp_server.commands import _place
from lsp_server.language_ids import language_id
from tests.lsp_server.commandline import environment, midfill

# --- places


@pytest.mark.parametrize(
    ("text", "path", "line", "column"),
    [
        ("a.py:3:4", "a.py", 3, 4),
        ("C:\\x.py:3:4", "C:\\x.py", 3, 4),
        ("C:/x y.py:1:1", "C:/x y.py", 1, 1),
        ("a:1:2:3:4", "a:1:2", 3, 4),
        ("../é.py:10:20", "../é.py", 10, 20),
    ],
)
def test_targets(text: str, path: str, line: int, column: int) -> None:
    target = _place.parse_target(text)
    assert (target.path, target.line, target.column) == (Path(path), line, column)


def test_a_windows_target_keeps_its_drive() -> None:
    assert PureWindowsPath(str(_place.parse_target("C:\\x.py:3:4").path)).drive == "C:"


@pytest.mark.parametrize("text", ["a.py", "a.py:3", "a.py:3:", "a.py:x:1", ":1:1", "a.py:1:-1", "a.py:1:²"])
def test_wrong_targets(text: str) -> None:
    with pytest.raises(_place.UsageError, match="is not FILE:LINE:COL"):
        _place.parse_target(text)


TEXT = "ab\r\ncd\re𝒳f\x0cg\u2028h\n"


@pytest.mark.parametrize(
    ("line", "column", "offset"), [(1, 1, 0), (1, 3, 2), (2, 1, 4), (2, 3, 6), (3, 1, 7), (3, 8, 14), (4, 1, 15)]
)
def test_offsets_and_back(line: int, column: int, offset: int) -> None:
    assert _place.offset_of(TEXT, _place.Target(Path("x"), line, column)) == offset
    assert _place.place_of(TEXT, offset) == {"line": line, "column": column}


@pytest.mark.parametrize(
    ("line", "column", "words"),
    [
        (0, 1, "x has lines 1 to 4, there is no line 0"),
        (5, 1, "x has lines 1 to 4, there is no line 5"),
        (1, 0, "line 1 of x has columns 1 to 3, not 0"),
        (1, 4, "line 1 of x has columns 1 to 3, not 4"),
        (4, 2, "line 4 of x has columns 1 to 1, not 2"),
    ],
)
def test_places_outside_the_file(line: int, column: int, words: str) -> None:
    with pytest.raises(_place.UsageError) as caught:
        _place.offset_of(TEXT, _place.Target(Path("x"), line, column))
    assert str(caught.value) == words


def test_the_empty_file_has_one_place() -> None:
    assert _place.offset_of("", _place.Target(Path("x"), 1, 1)) == 0


def test_language_ids() -> None:
    assert [language_id(name) for name in ("a/b.py", "X.TSX", "Makefile", "a.unknown")] == [
        "python",
        "typescriptreact",
        "makefile",
        "plaintext",
    ]


def test_the_root_is_the_nearest_project(tmp_path: Path) -> None:
    inner = tmp_path / "repo" / "pkg"
    inner.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert _place.root_of(inner / "a.py") == tmp_path.resolve() / "repo"
    shot = _place.snapshot(inner / "a.py", "x", tmp_path.resolve() / "repo", lambda _: False)
    assert (shot.path, shot.language_id) == ("pkg/a.py", "python")
    assert shot.uri == (inner.resolve() / "a.py").as_uri()


# --- usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["complete"],
        ["models"],
        ["serve", "--tcp", "localhost"],
        ["serve", "--tcp", ":80"],
        ["serve", "--tcp", "localhost:65536"],
        ["serve", "--tcp", "localhost:-1"],
        ["serve", "--stdio", "--tcp", "localhost:1"],
        ["--nonsense"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(arguments)
    assert caught.value.code == 2
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["complete", "a.py"], "'a.py' is not FILE:LINE:COL"),
        (["complete", "none.py:1:1"], "none.py: No such file or directory"),
        (["complete", ".:1:1"], "Is a directory"),
        (["complete", "binary:1:1"], "binary is a binary file"),
        (["complete", "latin1.py:1:1"], "latin1.py is not UTF-8 (byte 3)"),
        (["complete", "ok.py:9:1"], "ok.py has lines 1 to 2, there is no line 9"),
        (["complete", "ok.py:1:1", "--open", "none.py"], "none.py: No such file or directory"),
        (["complete", "ok.py:1:1", "--config", "none.toml"], "none.toml: there is no such file"),
        (["complete", "ok.py:1:1", "--backend", "work"], 'backend: "work" is not'),
        (["complete", "ok.py:1:1", "--config", "two.toml"], "backend: not set; must be one of"),
        (["complete", "ok.py:1:1", "--config", "kind.toml"], "backends.a.kind is 'fmm'; allowed: ffm"),
        (["serve", "--log-file", "no/log"], "no/log: No such file or directory"),
        (["serve", "--trace", "no/trace"], "cannot write to no/trace: No such file or directory"),
        (["serve", "--trace-text"], "--trace-text needs --trace FILE"),
        (["serve", "--tcp", "192.0.2.1:1"], "cannot serve: "),
        (["models", "path", "--config", "gguf.toml"], "There is no model file "),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="messages of the system are those of POSIX")
def test_what_is_wrong_is_said_on_stderr(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\x00")
    (tmp_path / "latin1.py").write_bytes(b"caf\xe9")
    (tmp_path / "ok.py").write_text("x = 1\n")
    (tmp_path / "two.toml").write_text('[backends.a]\nkind = "ffm"\n[backends.b]\nkind = "ffm"\n')
    (tmp_path / "kind.toml").write_text('[backends.a]\nkind = "fmm"\n')
    (tmp_path / "gguf.toml").write_text('[backends.a]\nkind = "llama-cpp"\nmodel_path = "none.gguf"\n')
    done = midfill(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_version(tmp_path: Path) -> None:
    done = midfill("--version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[0] == "midfill"


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are POSIX")
def test_in_a_terminal_it_says_how_to_use_it(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    try:
        command = [sys.executable, "-m", "lsp_server"]
        done = subprocess.run(
            command, stdin=theirs, capture_output=True, text=True, cwd=tmp_path, env=environment(tmp_path), check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stdout) == (2, "")
    assert "midfill complete FILE:LINE:COL" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo terminals are POSIX")
def test_in_a_terminal_serve_says_that_it_waits(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "lsp_server", "serve"]
    serving = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment(tmp_path)
    )
    os.close(theirs)
    with serving, os.fdopen(ours, "wb"):
        assert serving.stderr
        assert serving.stdout
        assert serving.stderr.readline() == b"midfill: waiting for an editor to speak LSP here; Ctrl+C ends it\n"
        serving.terminate()
        assert serving.stdout.read() == b""


@pytest.mark.parametrize("arguments", [(), ("--stdio",), ("serve",), ("serve", "--stdio"), ("-v",)])
def test_without_a_terminal_it_serves_and_ends_with_its_input(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = midfill(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")  # exit without shutdown
    assert "Traceback" not in done.stderr
    assert "waiting for an editor" not in done.stderr


def test_starting_imports_neither_engine_nor_http(tmp_path: Path) -> None:
    """What is imported before `initialize` is answered delays every start of an editor."""
    code = (
        "import sys\nfrom lsp_server import cli, fds, logs\nfrom lsp_server.server import serve\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'httpx', 'platformdirs', 'llama_cpp', 'tomllib'}"
        "| {name for name in sys.modules if name.startswith('completion.engine')}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
