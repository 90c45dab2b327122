"""The user's own patterns for git: found and read as git does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from completion.privacy import Ignored
from completion.privacy.user_ignores import user_ignores
from completion.settings import PrivacySettings
from completion.types import DocumentSnapshot, PlainText

FILES = PrivacySettings().ignore_files


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / "w").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path / "w")], check=True)
    return tmp_path


def why(home: Path, path: str) -> str:
    root = home / "w"
    document = DocumentSnapshot((root / path).as_uri(), "python", 1, PlainText(""), path, str(root))
    return Ignored((), FILES).why(document)


def git_ignores(home: Path, path: str) -> bool:
    command = ["git", "-C", str(home / "w"), "check-ignore", "-q", "--no-index", path]
    return subprocess.run(command, check=False).returncode == 0


@pytest.mark.parametrize(
    "config",
    [
        "",  # the default place
        "[core]\n\texcludesFile = ~/mine\n",
        '[core]\nexcludesfile="~/mine" ; of all my machines\n',
        '[user]\n\tname = x\n[CORE] ExcludesFile = ~/"mine"\n',
        "[core]\n\texcludesFile = ~/other\n[core]\n\texcludesFile = ~/mine\n",
        '[core "sub"]\n\texcludesFile = ~/other\n',
        "[core]\n\t# excludesFile = ~/other\n",
    ],
)
def test_found_as_git_finds_it(home: Path, config: str) -> None:
    (home / ".gitconfig").write_text(config)
    mine = home / "mine" if "mine" in config else home / ".config" / "git" / "ignore"
    mine.write_text("private/\n*.local.py\n")
    (home / "other").write_text("a.py\n")
    assert Path(user_ignores()) == mine
    for path, ignored in (("private/a.py", True), ("b.local.py", True), ("a.py", False)):
        assert bool(why(home, path)) is ignored
        assert git_ignores(home, path) is ignored


def test_the_repository_may_make_an_exception(home: Path) -> None:
    (home / ".config" / "git" / "ignore").write_text("*.local.py\n")
    (home / "w" / ".gitignore").write_text("!a.local.py\n")
    assert why(home, "a.local.py") == ""
    assert "your file of patterns for git" in why(home, "b.local.py")
    assert not git_ignores(home, "a.local.py")
    assert git_ignores(home, "b.local.py")


@pytest.mark.skipif(sys.platform == "win32", reason="SKIPPED: making a link takes rights there")
def test_where_it_links_to_another_folder_and_when_it_changes(home: Path) -> None:
    (home / "dotfiles").write_text("")
    (home / ".config" / "git" / "ignore").symlink_to(home / "dotfiles")
    now = [0.0]
    ignored = Ignored((), FILES, lambda: now[0])
    root = home / "w"
    document = DocumentSnapshot((root / "a.py").as_uri(), "python", 1, PlainText(""), "a.py", str(root))
    assert ignored.why(document) == ""
    (home / "dotfiles").write_text("a.py\n")
    now[0] = 10.0  # seconds
    assert ignored.why(document) != ""


def test_git_is_told_where(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = home / "chosen"
    chosen.write_text(f"[core]\n\texcludesFile = {home.as_posix()}/far/ignore\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(chosen))
    assert user_ignores() == f"{home.as_posix()}/far/ignore"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "elsewhere"))
    assert Path(user_ignores()) == home / "elsewhere" / "git" / "ignore"


def test_a_file_of_git_that_is_none_says_nothing(home: Path) -> None:
    (home / ".gitconfig").mkdir()
    assert Path(user_ignores()) == home / ".config" / "git" / "ignore"
    assert why(home, "a.py") == ""
