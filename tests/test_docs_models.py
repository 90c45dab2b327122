"""Every command of docs/models.md is run here, and its tables are what there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.model_table import MODELS
from tests.docs_hub import CONTENT, FILES, HUB_COMMANDS, LIST, PATH, PULL, PULL_FILE
from tests.services.hub import Hub

PAGE = Path(__file__).resolve().parent.parent / "docs" / "models.md"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.files.update(FILES)
        yield hub


def run(command: str, home: Path, hub: Hub) -> subprocess.CompletedProcess[str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING", "MIDFILL_", "PYTHONPATH"))}
    scripts = sysconfig.get_path("scripts")
    env = {
        **own,
        "PATH": scripts + os.pathsep + own["PATH"],
        "XDG_CONFIG_HOME": str(home),
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(home / "hf"),
        "NO_PROXY": "*",
    }
    shell = shutil.which("bash") or "sh"
    return subprocess.run([shell, "-c", command], cwd=home, env=env, capture_output=True, text=True, check=False)


def test_the_commands_do_what_the_page_says(tmp_path: Path, hub: Hub) -> None:
    pytest.importorskip("huggingface_hub")
    done = run(LIST, tmp_path, hub)
    assert done.returncode == 0
    assert "Recommended: " in done.stdout
    assert run(PATH, tmp_path, hub).returncode == 1
    pulled = run(PULL, tmp_path, hub)
    assert pulled.returncode == 0, pulled.stderr
    assert run(PATH, tmp_path, hub).stdout == pulled.stdout
    for done in (pulled, run(PULL_FILE, tmp_path, hub)):
        assert Path(done.stdout.rstrip("\n")).read_bytes() == CONTENT


def test_the_page_has_no_other_commands() -> None:
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for block in blocks for line in block.strip().split("\n")] == [LIST, PULL, PATH, PULL_FILE]
    assert set(HUB_COMMANDS) == {LIST, PULL, PATH, PULL_FILE}


def test_the_page_has_the_table_of_models() -> None:
    rows = re.findall(
        r"^\| `([\w.-]+)` \| (.+) \| (\w+) \| ([\d.]+) GB \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    quantisation = re.compile(r"Q\d_\w+(?=\.gguf$)", re.IGNORECASE)
    expected = []
    for model in MODELS:
        found = quantisation.search(model.file)
        assert found
        repo = f"`{model.repo}`" if model.repo else "in the extra `local`"
        expected.append((model.name, repo, found[0].upper(), f"{model.size / 1e9:.1f}"))
    assert rows == expected
