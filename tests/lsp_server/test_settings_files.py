from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from completion.settings import CompletionSettings
from lsp_server import settings as module
from lsp_server.settings import load
from tests.lsp_server.reading import WORK, only, read


@pytest.fixture(autouse=True)
def _own_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "user_file", lambda: tmp_path / "user" / "config.toml")


# --- files


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[completion]\nmax_lines = \n", "line 2, column 13"),
        (b"max_lines = 'caf\xe9'\n", "not UTF-8 (byte 16)"),
        ("[completion]\n".encode("utf-16"), "not UTF-8 (byte 0)"),
        (b"a = " + b"[" * 5000, "not valid TOML"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "not valid TOML"),
        (b".".join([b"a"] * 16000) + b" = 1", "more than 300 dots"),
        (b"\x00", "not valid TOML"),
    ],
    ids=range(8),
)
def test_a_broken_file_is_one_problem_and_the_rest_works(tmp_path: Path, data: bytes, words: str) -> None:
    settings, problems = read(tmp_path, data, client={"completion": {"maxLines": 5}})
    problem = only(problems)
    assert (problem.path, problem.source) == ("", str(tmp_path / "config.toml"))
    assert words in problem.allowed
    assert settings.engine.completion.max_lines == 5


def test_byte_order_mark_and_crlf_are_fine(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, b"\xef\xbb\xbf[completion]\r\nmax_lines = 5\r\n")
    assert (settings.engine.completion.max_lines, problems) == (5, ())


def test_a_directory_is_not_read(tmp_path: Path) -> None:
    assert "not a regular file" in only(load(tmp_path, [], {}, None)[1]).allowed


def test_problems_of_one_file_are_limited(tmp_path: Path) -> None:
    problems = read(tmp_path, "\n".join(f"x{n} = 1" for n in range(5000)))[1]
    assert len(problems) == 20
    assert problems[-1].allowed.startswith("more problems are not listed")


# --- the project file is untrusted


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('backend = "x"', "backend"),
        ('[backends.work]\nurl = "https://evil.example"', "backends"),
        ('[backends.work]\nkey_command = ["touch", "x"]', "backends"),
        ("[privacy]\nredact = false", "privacy.redact"),
        ("[privacy]\nallow_remote = true", "privacy.allow_remote"),
    ],
)
def test_a_project_cannot_set(tmp_path: Path, text: str, path: str) -> None:
    settings, problems = read(tmp_path, WORK, text)
    problem = only(problems)
    assert (problem.path, problem.source) == (path, str(tmp_path / "root" / ".midfill.toml"))
    assert "a project file may hold only" in problem.allowed
    assert settings.backends == read(tmp_path, WORK, "")[0].backends
    assert settings.engine == read(tmp_path, WORK, "")[0].engine


def test_a_project_only_adds_to_ignored_files(tmp_path: Path) -> None:
    project = '[privacy]\nignore = ["*.sql", ".env"]\n'
    settings, problems = read(tmp_path, "", project)
    assert problems == ()
    assert settings.engine.privacy.ignore == ("*.sql", ".env")
    settings, _ = read(tmp_path, '[privacy]\nignore = ["a"]', project, client={"privacy": {"ignore": ["b"]}})
    assert settings.engine.privacy.ignore == ("b", "*.sql", ".env")


def test_a_project_can_switch_off_but_not_on(tmp_path: Path) -> None:
    on = "completion.enabled = true\nlanguages.go.enabled = true\n"
    off = "completion.enabled = false\nlanguages.go.enabled = false\n"
    assert not read(tmp_path, off, on)[0].engine.completion.enabled
    assert not read(tmp_path, off, on)[0].engine.for_language("go").enabled
    assert not read(tmp_path, on, off)[0].engine.completion.enabled
    assert not read(tmp_path, "", off)[0].engine.for_language("go").enabled
    mixed = "completion.enabled = false\nlanguages.go.enabled = true\n"
    assert read(tmp_path, "", mixed)[0].engine.for_language("go").enabled
    assert not read(tmp_path, "completion.enabled = false", mixed)[0].engine.for_language("go").enabled


def test_a_project_asks_for_nothing_that_costs(tmp_path: Path) -> None:
    project = '[completion]\nspeculate = "always"\n[languages.go]\nspeculate = "never"\n'
    settings, _ = read(tmp_path, "", project)
    assert settings.engine.completion.speculate == "local"
    assert settings.engine.for_language("go").speculate == "never"
    settings, _ = read(tmp_path, '[completion]\nspeculate = "never"', project)
    assert settings.engine.completion.speculate == "never"
    settings, _ = read(tmp_path, '[completion]\nspeculate = "always"', project)
    assert settings.engine.completion.speculate == "always"


def test_a_project_is_held_to_the_ranges(tmp_path: Path) -> None:
    project = "[completion]\nmax_tokens = 100000\nprompt_tokens = 9999999\n[languages.go]\nmax_tokens = 5000\n"
    settings, problems = read(tmp_path, "", project)
    assert [p.path for p in problems] == [
        "completion.max_tokens",
        "completion.prompt_tokens",
        "languages.go.max_tokens",
    ]
    assert settings.engine.for_language("go") == settings.engine.completion == CompletionSettings()


def test_a_project_cannot_bring_back_sources_the_user_left_out(tmp_path: Path) -> None:
    both = '[context]\nsources = ["open_files"]\n'
    none = "[context]\nsources = []\n"
    assert read(tmp_path, none, both)[0].engine.context.sources == ()
    assert read(tmp_path, both, none)[0].engine.context.sources == ()
    assert read(tmp_path, both, both)[0].engine.context.sources == ("open_files",)
    assert read(tmp_path, "", both)[0].engine.context.sources == ("open_files",)


def test_a_folder_no_file_system_can_have(tmp_path: Path) -> None:
    problem = only(load(None, [tmp_path / "a\0b"], {}, None)[1])
    assert problem.allowed == "cannot be read: no file can have this name"
    assert "\0" not in str(problem)


def test_a_large_project_file_is_refused(tmp_path: Path) -> None:
    text = "[completion]\nmax_lines = 5\n"
    fits = text + "#" * (64 * 1024 - len(text))
    assert read(tmp_path, "", fits)[0].engine.completion.max_lines == 5
    settings, problems = read(tmp_path, "", fits + "#")
    assert "larger than 64 kB" in only(problems).allowed
    assert settings.engine.completion == CompletionSettings()


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes in the file system")
@pytest.mark.parametrize("target", ["file", "/dev/zero", "loop", "fifo"])
def test_links_and_special_files_in_a_project_are_refused(tmp_path: Path, target: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    path = root / ".midfill.toml"
    match target:
        case "fifo":
            os.mkfifo(path)
        case "loop":
            path.symlink_to(path)
        case "file":
            (tmp_path / "outside.toml").write_text("[completion]\nmax_lines = 5\n")
            path.symlink_to(tmp_path / "outside.toml")
        case _:
            path.symlink_to(target)
    settings, problems = load(None, [root], {}, None)
    assert ("regular file" if target == "fifo" else "symbolic link") in only(problems).allowed
    assert settings.engine.completion == CompletionSettings()


@pytest.mark.skipif(sys.platform == "win32", reason="links in the file system")
def test_the_users_own_file_may_be_a_link_but_no_device(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("[completion]\nmax_lines = 5\n")
    (tmp_path / "link.toml").symlink_to(tmp_path / "real.toml")
    assert load(tmp_path / "link.toml", [], {}, None)[0].engine.completion.max_lines == 5
    assert "not a regular file" in only(load(Path("/dev/zero"), [], {}, None)[1]).allowed


def test_each_root_has_its_file(tmp_path: Path) -> None:
    for name, text in (("a", "max_lines = 5"), ("b", "max_tokens = 6"), ("c", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".midfill.toml").write_text(f"[completion]\n{text}\n")
    roots = [tmp_path / name for name in ("a", "b", "c", "a")]
    completion = load(None, roots, {}, None)[0].engine.completion
    assert (completion.max_lines, completion.max_tokens) == (5, 6)
