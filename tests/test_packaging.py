"""The wheel as users get it: what is in it, and that nothing of the folder it is started in gets in its way."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"lsp_server", "completion", "backends", "editors"}

Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    alone = ["--no-isolation"] if importlib.util.find_spec("hatchling") else []
    command = [sys.executable, "-m", "build", "--wheel", *alone, "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


class Installed:
    """An environment of its own that holds the wheel, and sees the libraries of this one."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, with_pip=False)
        scripts = folder / ("Scripts" if sys.platform == "win32" else "bin")
        self.python = scripts / ("python.exe" if sys.platform == "win32" else "python")
        self.site = Path(
            self.run(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).stdout.strip()
        )
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(self.site)
        (self.site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.script = scripts / "midfill-script.py"  # what an installer makes of the entry point
        self.script.write_text("import sys\nfrom lsp_server.__main__ import main\nsys.exit(main())\n")

    def run(self, arguments: Sequence[str], cwd: Path, *, python_path: str = "", stdin: bytes = b"") -> Done:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MIDFILL_", "PYTHON"))}
        more = {"PYTHONPATH": python_path} if python_path else {}
        done = subprocess.run(
            [str(self.python), *arguments], cwd=cwd, env={**kept, **more}, input=stdin, capture_output=True, check=False
        )
        return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("venv"), wheel)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A project that has packages of our names, which tell when they are imported."""
    for name in ("completion", "backends"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\n")
    (tmp_path / "settings.toml").write_text('[backends.a]\nkind = "nope"\n')
    return tmp_path


def test_the_wheel_holds_our_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    assert len(tops) == len(PACKAGES) + 1
    assert not [name for name in names if "__pycache__" in name or "node_modules" in name or "test" in name]
    for package in PACKAGES:
        here = {path.relative_to(ROOT).as_posix() for path in (ROOT / package).rglob("*.py")}
        assert {name for name in here if "node_modules" not in name} <= set(names)


DOCTOR = ("doctor", "--json", "--config", "settings.toml")


@pytest.mark.parametrize("python_path", ["", ".", "absolute"])
@pytest.mark.parametrize("way", ["script", "module"])
def test_packages_of_the_same_name_are_not_taken(
    installed: Installed, hostile: Path, way: str, python_path: str
) -> None:
    start = [str(installed.script)] if way == "script" else ["-m", "lsp_server"]
    path = str(hostile) if python_path == "absolute" else python_path
    done = installed.run([*start, *DOCTOR], hostile, python_path=path)
    assert done.returncode == 2, done.stderr
    assert "allowed: ffm" in json.loads(done.stdout)["checks"][0]["detail"]
    assert not (hostile / "imported").exists()


def test_the_hostile_packages_would_tell(installed: Installed, hostile: Path) -> None:
    """Without the guard they are imported: the test above can fail."""
    done = installed.run(["-c", "import lsp_server.settings"], hostile)
    assert done.returncode == 1
    assert (hostile / "imported").exists()


@pytest.mark.parametrize("name", ["completion", "backends"])
def test_a_damaged_installation_is_named(wheel: Path, tmp_path: Path, name: str) -> None:
    broken = Installed(tmp_path / "venv", wheel)
    (broken.site / name / "__init__.py").unlink()
    done = broken.run([str(broken.script), "--version"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"package {name!r} in {broken.site.resolve()} is damaged: install midfill again" in done.stderr


def test_the_server_tells_the_version_of_the_distribution(installed: Installed, tmp_path: Path) -> None:
    messages: list[dict[str, object]] = [
        {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
    stdin = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) for body in bodies)
    served = installed.run([str(installed.script)], tmp_path, stdin=stdin)
    version = installed.run(["-c", "import importlib.metadata as m; print(m.version('midfill'))"], tmp_path)
    assert served.returncode == 0, served.stderr
    first = json.loads(served.stdout.split("\r\n\r\n")[1].partition("Content-Length")[0])
    assert first["result"]["serverInfo"] == {"name": "midfill", "version": version.stdout.strip()}
    assert installed.run([str(installed.script), "--version"], tmp_path).stdout == f"midfill {version.stdout}"
