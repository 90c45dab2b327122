"""The VS Code extension's source as tsc and ESLint want it, its unit tests, and what its package holds."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.editors.vscode_parts import EXTENSION, code_server, extension, missing
from tests.lsp_client import ROOT

pytestmark = pytest.mark.skipif(missing() != "", reason=f"SKIPPED: {missing()}")

LOCK = EXTENSION / "package-lock.json"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("script", ["check", "test"])
def test_scripts(script: str) -> None:
    path = os.pathsep.join([str(Path(code_server()[0]).parent), os.environ["PATH"]])  # its Node.js
    done = subprocess.run(
        ["npm", "run", script],
        cwd=EXTENSION,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_holds_what_is_needed_and_nothing_else() -> None:
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    with zipfile.ZipFile(extension()) as package:
        names = {name.removeprefix("extension/") for name in package.namelist() if name.startswith("extension/")}
        text = package.read("extension/dist/extension.js").decode()
        manifest = json.loads(package.read("extension/package.json"))
        licences = package.read("extension/dist/licences.txt").decode()
    pictures = {f"images/{path.name}" for path in (EXTENSION / "images").glob("*.png")}
    bundled = {"dist/extension.js", "dist/licences.txt"}
    assert names == {"LICENSE.txt", "readme.md", "changelog.md", "package.json", *bundled, *pictures}
    for name in ("vscode-languageclient", "minimatch"):
        assert f"{name} {packages[f'node_modules/{name}']['version']}\n" in licences
    assert str(ROOT) not in text
    assert manifest["version"] in (EXTENSION / "CHANGELOG.md").read_text(encoding="utf-8")


def test_versions_are_pinned_and_no_registry_is_named() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    packages = json.loads(LOCK.read_text(encoding="utf-8"))["packages"]
    assert packages[""]["devDependencies"] == manifest["devDependencies"]
    assert "dependencies" not in manifest  # all is bundled
    for name, version in manifest["devDependencies"].items():
        assert packages[f"node_modules/{name}"]["version"] == version
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert "://" not in LOCK.read_text(encoding="utf-8")


def test_the_licence_is_that_of_midfill() -> None:
    assert (EXTENSION / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
