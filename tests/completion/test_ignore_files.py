"""Files of patterns: as git reads them, whatever they hold, and read anew when they change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from completion.clock import SystemClock
from completion.privacy import Ignored, Policy
from completion.settings import EngineSettings, PrivacySettings
from completion.types import DocumentSnapshot, PlainText
from tests.completion.fake_clock import FakeClock

FILES = PrivacySettings().ignore_files
Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    def written(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "w" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "w"

    return written


def document(root: Path, path: str, language: str = "python") -> DocumentSnapshot:
    return DocumentSnapshot((root / path).as_uri(), language, 1, PlainText(""), path, str(root))


def why(root: Path, path: str) -> str:
    return Ignored((), FILES).why(document(root, path))


@pytest.mark.parametrize(
    ("files", "path", "ignored"),
    [
        ({".gitignore": "*.log\n"}, "a/b.log", True),
        ({".gitignore": "*.log\n"}, "a/b.py", False),
        ({".gitignore": "# *.py\n\n"}, "b.py", False),
        ({".gitignore": "/b.py\n"}, "a/b.py", False),
        ({".gitignore": "build/\n"}, "x/build/b.py", True),
        ({".gitignore": "build/\n"}, "x/build", False),  # a file
        ({".gitignore": "*.py\n!b.py\n"}, "b.py", False),
        ({".gitignore": "!b.py\n*.py\n"}, "b.py", True),
        ({".gitignore": "*.py\n", "a/.gitignore": "!b.py\n"}, "a/b.py", False),  # the deeper one wins
        ({".gitignore": "!b.py\n", "a/.gitignore": "*.py\n"}, "a/b.py", True),
        ({".gitignore": "a/\n!a/b.py\n"}, "a/b.py", True),  # what is in an ignored folder stays ignored
        ({".gitignore": "a/\n", "a/.gitignore": "!b.py\n"}, "a/b.py", True),
        ({".gitignore": "a/*\n!a/b.py\n"}, "a/b.py", False),
        ({".gitignore": "*\n!src/\n"}, "src/b.py", True),
        ({".gitignore": "a/**/c\n"}, "a/x/y/c/b.py", True),
        ({".gitignore": "\\#b.py\n"}, "#b.py", True),
        ({".gitignore": "[ab].py\n"}, "b.py", True),
        ({".gitignore": "[b.py\n***[\n"}, "b.py", False),
        ({".gitignore": "[[:upper:]]b.[[:lower:]y]*\n"}, "Ab.py", True),
        ({".gitignore": "[[:upper:]]b.py\n"}, "ab.py", sys.platform in ("win32", "darwin")),
        ({".gitignore": "[[a]b.py\n[a--]c.py\n"}, "ab.py", True),
        ({".gitignore": "b.py\0.c\n"}, "b.py", True),
        ({".gitignore": "\ufeffb.py\r\n*.c\r\n"}, "b.py", True),
        ({".gitignore": "a.py\rb.py\n"}, "b.py", False),  # git knows no other line ends
        ({".gitignore": "caf\u00e9.py\n"}, "cafe\u0301.py", True),
        ({".git/info/exclude": "b.py\n"}, "b.py", True),
        ({".git/info/exclude": "b.py\n", ".gitignore": "!b.py\n"}, "b.py", False),
        ({".midfillignore": "b.py\n"}, "b.py", True),
        ({".copilotignore": "b.py\n"}, "a/b.py", True),
        ({"a/.continueignore": "/b.py\n"}, "a/b.py", True),
        ({".midfillignore": "b.py\n", ".gitignore": "!b.py\n"}, "b.py", True),  # each kind by itself
        ({"other/.gitignore": "*\n"}, "b.py", False),
    ],
)
def test_as_git_reads_them(tree: Tree, files: dict[str, str], path: str, ignored: bool) -> None:
    root = tree({**files, "git-is-not-asked": ""})
    assert bool(why(root, path)) is ignored


@pytest.mark.skipif(shutil.which("git") is None, reason="git is asked")
def test_git_says_the_same(tree: Tree) -> None:
    paths = ["a.py", "a/b.py", "a/b/c.py", "b/a.log", "c/x y.py", "keep/a.log", "keep/b/a.log", "z/.hid/a", "b/b/b/b"]
    root = tree(
        {
            **dict.fromkeys(paths, ""),
            ".gitignore": "*.log\n!keep/*.log\n/a/*\n!/a/b/\n**/.hid/*\nx\\ y.py\n/*/**/b/\n",
            "keep/.gitignore": "!b/\n*.log \n!/a.log\n",
        }
    )
    git = ["git", "-C", str(root), "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    done = subprocess.run(git, input="\0".join(paths).encode(), stdout=subprocess.PIPE, check=False)
    ignored = {path for path in paths if why(root, path)}
    assert ignored == set(filter(None, done.stdout.decode().split("\0")))
    assert 2 <= len(ignored) < len(paths)


def test_the_reason_names_the_line_and_the_file(tree: Tree) -> None:
    root = tree({"a/.gitignore": "\n*.log\n", ".midfillignore": "x" * 100})
    assert why(root, "a/b.log") == "it matches `*.log`, line 2 of a/.gitignore"
    assert why(root, "x" * 100).startswith(f"it matches `{'x' * 60}…`")


def test_a_workspace_within_a_repository(tree: Tree, tmp_path: Path) -> None:
    root = tree({"app/b.py": "", "app/a.log": "", ".gitignore": "*.log\n/app/\n"})
    assert why(root / "app", "a.log") == "", "no repository: nothing above the workspace is read"
    (root / ".git").mkdir()
    assert why(root / "app", "a.log") == "it matches `*.log`, line 1 of .gitignore"
    assert why(root / "app", "b.py") == "", "the folder that was opened is meant to be seen"


def test_a_file_of_no_workspace(tree: Tree) -> None:
    root = tree({"a/b.py": "", ".gitignore": "b.py\n"})
    lone = DocumentSnapshot((root / "a" / "b.py").as_uri(), "python", 1, PlainText(""))
    assert not Ignored((), FILES)(lone)
    (root / ".git").mkdir()
    assert Ignored((), FILES)(lone)
    assert not Ignored((), FILES)(DocumentSnapshot("untitled:b.py", "python", 1, PlainText("")))


async def test_read_anew_after_a_while_or_when_saved(tree: Tree) -> None:
    clock = FakeClock()
    root = tree({".gitignore": "x\n", "b.py": ""})
    ignored = Ignored((), FILES, clock.now)
    asked = document(root, "b.py")
    assert not ignored(asked)
    tree({".gitignore": "*.py\n"})
    assert not ignored(asked), "not looked at yet"
    await clock.advance(3.1)
    assert ignored(asked)
    tree({".gitignore": "*.c\n# and nothing else\n"})
    ignored.saved((root / "other.py").as_uri())
    assert ignored(asked)
    ignored.saved((root / ".gitignore").as_uri())
    assert not ignored(asked)
    tree({"sub/.gitignore": "*.py\n"})
    assert ignored(document(root, "sub/b.py"))
    (root / "sub" / ".gitignore").unlink()
    await clock.advance(3.1)
    assert not ignored(document(root, "sub/b.py"))


def test_settings_before_files_and_exceptions_of_the_user(tree: Tree) -> None:
    root = tree({".gitignore": ".env\nb.py\n"})
    ignored = Ignored(("!.env", "!b.py", "*.c", "!a.c"), FILES)
    assert [ignored(document(root, path)) for path in (".env", "b.py", "a.c", ".env.local")] == [
        False,
        False,
        True,
        True,
    ]
    assert Ignored((), ())(document(root, "b.py")) is False
    assert Ignored((), ()).why(document(root, ".env")) == "it matches the built-in pattern `.env`"
    assert Ignored(("*.py",)).why(document(root, "b.py")) == "it matches `*.py` of privacy.ignore"


@pytest.mark.parametrize(
    "name",
    [
        *(
            ".env",
            ".env.local",
            "prod.env",
            ".envrc",
            "a.pem",
            "a.key",
            "id_rsa",
            "id_ed25519.pub",
            "x.jks",
            "x.keystore",
        ),
        *("credentials", "credentials.json", "secrets.yaml", "aws-credentials.ini", ".netrc", ".npmrc", ".pypirc"),
        *("terraform.tfstate", "terraform.tfstate.backup", "prod.tfvars", "kubeconfig", ".kube/config", "htpasswd"),
        *(".docker/config.json", ".aws/credentials", ".ssh/config", ".bash_history", "service-account-prod.json"),
        *("Code/User/settings.json", ".vscode-server/data/Machine/settings.json"),
    ],
)
def test_ignored_by_name(tmp_path: Path, name: str) -> None:
    assert Ignored(())(document(tmp_path, f"sub/{name}"))


@pytest.mark.parametrize(
    "name",
    [
        *(".env.example", ".env.sample", "prod.tfvars.example", "env.py", "environment.ts", "keys.py", "id_map.py"),
        *("credentials.py", "secrets.go", "secret_manager.ts", "kubeconfig.go", "config.json", "tfstate.py", "history"),
        *("docker/config.json", "netrc.py", "password.html", "token.rs", "Makefile", "settings.json"),
        *(".vscode/settings.json", "User/settings.json"),
    ],
)
def test_not_ignored_by_name(tmp_path: Path, name: str) -> None:
    assert not Ignored(())(document(tmp_path, f"sub/{name}"))


@pytest.mark.parametrize(
    ("text", "words"),
    [("x" * 300_000, "is larger than 256 kB"), ("a\n" * 2001, "has more than 2000 patterns")],
)
def test_too_large_ones_ignore_their_folder(tree: Tree, text: str, words: str) -> None:
    root = tree({"a/.gitignore": text, "b.py": ""})
    assert why(root, "a/b.py") == f"a/.gitignore {words}"
    assert why(root, "b.py") == ""


@pytest.mark.skipif(sys.platform == "win32", reason="links and special files of POSIX")
def test_links_and_special_files(tree: Tree, tmp_path: Path) -> None:
    root = tree({"patterns": "*.py\n", "a/b.py": "", "b/b.py": "", "c/b.py": "", "d/b.py": "", "e/b.py": ""})
    (tmp_path / "outside").write_text("*.c\n")
    (root / "a" / ".gitignore").symlink_to("../patterns")
    (root / "b" / ".gitignore").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "c" / ".gitignore")
    (root / "d" / ".gitignore").mkdir()
    (root / "e" / ".gitignore").symlink_to("nowhere")
    assert why(root, "a/b.py") == "it matches `*.py`, line 1 of a/.gitignore"
    assert why(root, "b/b.py") == "b/.gitignore is a link that leads out of the workspace"
    assert why(root, "c/b.py") == "c/.gitignore is not a regular file"
    assert why(root, "d/b.py") == ""
    assert why(root, "e/b.py").startswith("e/.gitignore cannot be read")


@pytest.mark.timeout(60)  # hours, if the time grew as such expressions' does
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*a" * 12 + "b", True), ("!" + "*a" * 12 + "b", False), ("**/a/" * 12 + "b", True), ("a*" * 400 + "b/", True)],
)
def test_patterns_made_to_be_slow_are_not(tree: Tree, pattern: str, expected: bool) -> None:
    """They match more than they say, and an exception is no longer one."""
    root = tree({".gitignore": f"{pattern}\n"})
    found = why(root, "a/" * 60 + "a" * 200 + "/b")
    assert bool(found) is expected


def test_what_only_models_on_this_machine_may_see(tmp_path: Path) -> None:
    settings = EngineSettings(
        privacy=PrivacySettings(local_only=("clients/",)),
        local_folders=(str(tmp_path / "odd[name]"),),
        local_languages=("sql",),
    )
    policy = Policy(settings, SystemClock())
    assert policy.stays(document(tmp_path, "a.py")) == ""
    assert policy.stays(document(tmp_path, "a.sql", "sql")) == "languages.sql.allow_remote is false"
    assert policy.stays(document(tmp_path, "clients/a.py")) == "the file matches `clients/` of privacy.local_only"
    own = policy.stays(document(tmp_path / "odd[name]", "a.py"))
    assert own == "its project says privacy.allow_remote = false"
    assert policy.stays(document(tmp_path / "oddn", "a.py")) == ""
    quoted = document(tmp_path, "clients/a.py")
    assert policy.hidden(remote=True)(quoted)
    assert not policy.hidden(remote=False)(quoted)
    assert policy.hidden(remote=False)(document(tmp_path, ".env"))
    assert policy.left_out(quoted, remote=True).startswith("the file matches")
    assert policy.left_out(quoted, remote=False) == ""


def test_the_language_of_what_is_read_from_the_disk_is_told_by_its_name(tmp_path: Path) -> None:
    policy = Policy(EngineSettings(local_languages=("javascript", "cpp")), SystemClock())
    assert {name: bool(policy.stays(document(tmp_path, name, ""))) for name in ("a.js", "b.JSX", "c.h", "d.odd")} == {
        "a.js": True,
        "b.JSX": True,
        "c.h": True,
        "d.odd": True,
    }
    assert not any(policy.stays(document(tmp_path, name, "")) for name in ("a.ts", "b.py", "c.go"))
    assert not policy.stays(document(tmp_path, "a.js", "typescript")), "an editor says otherwise"
