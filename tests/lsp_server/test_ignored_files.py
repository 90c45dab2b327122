"""Ignored files on the command line: wherever the workspace begins, whatever they are linked as, in any role."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp_server.commandline import Done, midfill
from tests.services.ffm import Answer, FfmService

WHY = "it matches `{}` of privacy.ignore"


def ignored(pattern: str = "secrets/*") -> tuple[int, str]:
    return 1, f"midfill: no suggestion: ignored-file ({WHY.format(pattern)})\n"


@pytest.fixture
def service() -> Iterator[FfmService]:
    with FfmService(script=[Answer(deltas=("1",))] * 3) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, service: FfmService) -> Path:
    (tmp_path / "c.toml").write_text(
        f'[privacy]\nignore = ["secrets/*", ".env"]\n[backends.a]\nkind = "ffm"\nmodel = "codellama-7b"\n'
        f'url = "{service.url}"\nkey_env = "WORK_KEY"\n'
    )
    (tmp_path / "app" / "secrets").mkdir(parents=True)
    for name in ("app/secrets/c.c", "app/a.c", "app/.env"):
        (tmp_path / name).write_text("x = \nHIDDEN\n")
    return tmp_path


def complete(folder: Path, target: str, *more: str) -> Done:
    return midfill(
        "complete", f"{target}:1:5", "--config", str(folder / "c.toml"), *more, cwd=folder, env={"WORK_KEY": "test-key"}
    )


@pytest.mark.parametrize("mark", ["", "app/.git", "app/secrets/package.json", ".git"])
def test_wherever_the_workspace_begins(project: Path, service: FfmService, mark: str) -> None:
    if mark:
        (project / mark).mkdir()
    done = complete(project, "app/secrets/c.c")
    assert (done.returncode, done.stderr, service.log) == (*ignored(), [])
    assert complete(project, "app/a.c").returncode == 0


def test_from_within(project: Path, service: FfmService) -> None:
    done = midfill("complete", "c.c:1:5", "--config", str(project / "c.toml"), cwd=project / "app" / "secrets")
    assert (done.returncode, done.stderr, service.log) == (*ignored(), [])


@pytest.mark.skipif(sys.platform == "win32", reason="links in the file system")
def test_links_from_and_to_what_is_ignored(project: Path, service: FfmService) -> None:
    (project / "app" / "b.c").symlink_to("secrets/c.c")
    (project / "app" / "secrets" / "d.c").symlink_to("../a.c")
    (project / "deep").mkdir()
    (project / "deep" / ".env").symlink_to("../app/a.c")
    (project / "secrets").symlink_to("app")
    for target in ("app/b.c", "app/secrets/d.c", "deep/.env", "secrets/a.c"):
        done = complete(project, target)
        pattern = ".env" if target.endswith(".env") else "secrets/*"
        assert (done.returncode, done.stderr, service.log) == (*ignored(pattern), []), target
    (project / "app" / "e.c").symlink_to("a.c")
    assert complete(project, "app/e.c").returncode == 0


def test_open_files(project: Path, service: FfmService) -> None:
    (project / "app" / "f.c").write_text("int shown;\n")
    more = ("--open", "app/.env", "--open", "app/f.c", "--explain")
    done = complete(project, "app/a.c", *more)
    said = done.stderr.split("\n")
    assert f"midfill: app/.env is not shown to the model: {WHY.format('.env')}" in said or (
        f"midfill: .env is not shown to the model: {WHY.format('.env')}" in said
    )
    assert any(
        re.fullmatch(r"midfill: sent: f\.c lines 1 to 1; source \w+, score 0\.\d+, about \d+ tokens", line)
        for line in said
    )
    assert service.log[0].text.count("HIDDEN") == 1
    assert "sent: f.c" not in complete(project, "app/a.c", "--explain").stderr


@pytest.mark.skipif(sys.platform == "win32", reason="special files of POSIX")
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/null", "large", "folder"])
def test_special_and_large_files_are_refused_at_once(project: Path, service: FfmService, kind: str) -> None:
    path = kind if kind.startswith("/") else str(project / "app" / "special")
    words = f"{path} is not a regular file"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            Path(path).mkdir()
            words = f"{path}: Is a directory"
        case "large":
            with Path(path).open("wb") as file:
                file.truncate((64 << 20) + 1)
            words = f"{path} is larger than 64 MiB"
    for done in (complete(project, path), complete(project, "app/a.c", "--open", path)):
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"midfill: {words}\n")
    assert service.log == []
