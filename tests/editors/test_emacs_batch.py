"""The package in a batch Emacs: its functions, its lint, and that the server's copy of a text is right."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lsp_server.documents import Document
from lsp_server.edit import Edit
from lsp_server.positions import Encoding
from tests.e2e.conftest import KEY, KEY_ENV
from tests.editors import tap
from tests.editors.emacs_editor import BARE, PACKAGE, environ_of, missing
from tests.lsp_client import SERVE

pytestmark = pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")

HERE = Path(__file__).parent
FILES = sorted(PACKAGE.glob("*.el"))


def batch(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **environ_of(home), KEY_ENV: KEY, "LC_ALL": "C.UTF-8"}
    argv = ["emacs", "--batch", *BARE, *arguments]
    return subprocess.run(argv, env=environ, capture_output=True, encoding="utf-8", timeout=300, check=False)


def test_functions(tmp_path: Path) -> None:
    done = batch(tmp_path, "-L", str(PACKAGE), "-l", str(HERE / "emacs_tests.el"), "-f", "ert-run-tests-batch-and-exit")
    failed = [line for line in done.stderr.split("\n") if "   FAILED  " in line]
    assert done.returncode == 0, "\n".join(failed) + "\n\n" + done.stderr
    assert "Ran 0 tests" not in done.stderr


@pytest.fixture(scope="module")
def lint(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Of a copy, which is compiled in its folder."""
    home = tmp_path_factory.mktemp("lint")
    copies = [shutil.copy(file, home) for file in FILES]
    return batch(home, "-l", str(HERE / "emacs_lint.el"), *map(str, copies))


def test_compiled_and_documented_without_a_warning(lint: subprocess.CompletedProcess[str]) -> None:
    assert lint.returncode == 0, lint.stdout + lint.stderr


def test_lint_of_packages(lint: subprocess.CompletedProcess[str]) -> None:
    if "package-lint is not installed" in lint.stdout:
        pytest.skip("SKIPPED: package-lint is not installed for Emacs")
    assert "package-lint was run" in lint.stdout
    assert lint.returncode == 0, lint.stdout


def test_lint_tells_what_is_wrong(tmp_path: Path) -> None:
    copies = [shutil.copy(file, tmp_path) for file in FILES]
    bad = tmp_path / "midfill-edit.el"
    text = bad.read_text(encoding="utf-8")
    bad.write_text(
        text.replace("(provide ", '(defun midfill-edit-bad (x)\n  "no"\n  (y))\n(provide '), encoding="utf-8"
    )
    done = batch(tmp_path, "-l", str(HERE / "emacs_lint.el"), *map(str, copies))
    assert done.returncode == 1
    assert "midfill-edit.el: not compiled without warnings" in done.stdout
    assert "midfill-edit.el:" in done.stdout.replace("midfill-edit.el: not", "")


def test_the_server_has_the_text_whatever_is_done_to_it(tmp_path: Path, server_arguments: list[str]) -> None:
    file, wire = tmp_path / "edited.py", tmp_path / "wire.jsonl"
    file.write_text("def f(x):\n    return x\n", encoding="utf-8")
    command = tap.tapped(wire, [*SERVE, *server_arguments])
    done = batch(tmp_path, "-L", str(PACKAGE), "-l", str(HERE / "emacs_edits.el"), str(file), *command)
    assert done.returncode == 0, done.stderr
    document, saved, partial = Document("", "", 0, ""), 0, 0
    for message in tap.messages(wire):
        if message.get("method") == "textDocument/didOpen":
            document = Document("", "", 0, message["params"]["textDocument"]["text"])
        elif message.get("method") == "textDocument/didChange":
            for change in message["params"]["contentChanges"]:
                partial += "range" in change
                document.apply(edit(change), Encoding.UTF32)
        elif message.get("method") == "textDocument/didSave":
            saved += 1
            wanted = Path(f"{file}.{saved}").read_bytes().decode("utf-8")
            assert document.lines.slice(0, len(document.lines)) == wanted, f"at save {saved}"
    assert saved == 60
    assert partial > 60


def edit(change: dict[str, Any]) -> Edit:
    """A change as the server takes it."""
    if "range" not in change:
        return Edit(change["text"])
    start, end = change["range"]["start"], change["range"]["end"]
    return Edit(change["text"], (start["line"], start["character"], end["line"], end["character"]))
