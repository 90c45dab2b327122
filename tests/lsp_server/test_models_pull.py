"""`midfill models pull` with the real huggingface_hub, against a hub on loopback."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp_server.commandline import INTERRUPTIBLE, ROOT, Done, environment
from tests.lsp_server.pulling import CONTENT, FILE, HALF, NAME, REPO, TOKEN, Home
from tests.services.hub import COMMIT, Fault, Hub

pytest.importorskip("huggingface_hub")
SHA = hashlib.sha256(CONTENT).hexdigest()
WHOLE = {f"blobs/{SHA}", f"snapshots/{COMMIT}/{FILE}"}
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits are those of POSIX")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.files[f"{REPO}/{FILE}"] = CONTENT
        yield hub


@pytest.fixture
def home(tmp_path: Path, hub: Hub) -> Home:
    return Home(tmp_path, hub)


def pulled(home: Home, done: Done) -> Path:
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.rstrip("\n"))
    assert path.read_bytes() == CONTENT
    assert path == home.cache / "snapshots" / COMMIT / FILE
    assert home.files() == WHOLE
    return path


def failed(home: Home, done: Done, code: int, *words: str) -> None:
    """One line that says what to do; nothing that could be taken for a model; no token anywhere."""
    assert (done.returncode, done.stdout) == (code, "")
    said = [line for line in done.stderr.split("\n") if line and " %" not in line and "Downloading" not in line]
    assert len(said) == 1, done.stderr
    for word in words:
        assert word in said[0]
    assert TOKEN not in done.stderr
    assert home.files() <= {f"blobs/{SHA}.incomplete"}
    assert home.found() is None


class TestWell:
    def test_the_file_comes_whole_under_its_name(self, home: Home, hub: Hub) -> None:
        done = home.pull()
        path = pulled(home, done)
        assert done.stderr.split("\n")[0] == f"midfill: Downloading {NAME} (3 MB) …"
        assert f'model = "{NAME}"' in done.stderr
        asked = f"/{REPO}/resolve/{{}}/{FILE}"
        assert [(seen.method, seen.path) for seen in hub.log] == [
            ("HEAD", asked.format("main")),
            ("GET", asked.format(COMMIT)),  # what was looked at, even if the branch has moved on
            ("GET", f"/storage/{REPO}/{FILE}"),
        ]
        assert home.run("path", NAME).stdout == f"{path}\n"

    def test_it_is_not_fetched_twice(self, home: Home, hub: Hub) -> None:
        done = home.run("path", NAME)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"midfill: {NAME} is not here. Run `midfill models pull {NAME}`.\n"
        home.pull()
        hub.reset()
        done = home.pull()
        pulled(home, done)
        assert "already here" in done.stderr
        assert hub.log == []

    def test_the_hub_may_serve_it_itself_or_under_another_name(self, home: Home, hub: Hub) -> None:
        hub.storage = False
        hub.moved["me/Old"] = REPO
        done = home.pull(f"me/Old:{FILE}")
        assert done.returncode == 0, done.stderr
        assert Path(done.stdout.rstrip("\n")).read_bytes() == CONTENT

    def test_a_revision(self, home: Home, hub: Hub) -> None:
        pulled(home, home.pull(f"{NAME}@v1"))
        assert hub.log[0].path == f"/{REPO}/resolve/v1/{FILE}"
        assert home.run("path", f"{NAME}@{COMMIT}").returncode == 0
        assert home.run("path", f"{NAME}@v2").returncode == 1

    def test_the_token_reaches_the_hub_and_not_the_storage(self, home: Home, hub: Hub) -> None:
        hub.gated.add(REPO)
        hub.login = TOKEN
        pulled(home, home.pull(HF_TOKEN=TOKEN))
        asked = [seen for seen in hub.log if seen not in hub.transfers]
        assert [seen.headers.get("authorization") for seen in asked] == [f"Bearer {TOKEN}"] * 2
        assert ["authorization" in seen.headers for seen in hub.transfers] == [False]

    def test_a_disk_without_symbolic_links(self, home: Home, hub: Hub) -> None:
        done = home.pull(HF_HUB_DISABLE_SYMLINKS="1")
        path = pulled(home, done)
        assert not path.is_symlink()
        assert path.samefile(home.cache / "blobs" / SHA)

    def test_what_other_programs_fetched_is_used_and_ours_by_them(self, home: Home, hub: Hub) -> None:
        """Both ways, with the library's own functions."""
        code = f"import huggingface_hub as h; print(h.hf_hub_download({REPO!r}, {FILE!r}))"
        env = environment(home.path, home.env())
        fetch = [sys.executable, "-c", code]
        theirs = subprocess.run(fetch, env=env, cwd=home.path, capture_output=True, text=True, check=True)
        assert home.run("path", NAME).stdout == theirs.stdout
        (home.cache / "snapshots" / COMMIT / FILE).unlink()
        (home.cache / "blobs" / SHA).unlink()
        path = pulled(home, home.pull())
        hub.reset()
        again = subprocess.run(fetch, env=env, cwd=home.path, capture_output=True, text=True, check=True)
        assert again.stdout == f"{path}\n"
        assert hub.transfers == []


class TestBroken:
    def test_a_lost_connection_is_taken_up_where_it_was_lost(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(after=HALF), Fault(status=503), Fault(after=HALF // 2)]
        pulled(home, home.pull())
        ranges = [seen.headers.get("range") for seen in hub.transfers]
        assert ranges == [None, f"bytes={HALF}-", f"bytes={HALF}-", f"bytes={HALF + HALF // 2}-"]

    def test_a_server_without_ranges_begins_anew(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(after=HALF), Fault(ignores_range=True)]
        pulled(home, home.pull())

    def test_a_connection_lost_for_good_and_the_next_pull(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(after=HALF), *[Fault(after=0)] * 3]
        failed(home, home.pull(), 3, "connection was lost", "the same command goes on")
        assert home.partial.stat().st_size == HALF
        hub.reset()
        pulled(home, home.pull())
        assert [seen.headers.get("range") for seen in hub.transfers] == [f"bytes={HALF}-"]

    @posix
    def test_interrupted(self, home: Home, hub: Hub) -> None:
        """Ctrl+C while nothing comes; the next pull goes on."""
        hub.faults = [Fault(after=HALF, hold=True)]
        child = subprocess.Popen(
            [*INTERRUPTIBLE, "models", "pull", NAME],
            cwd=home.path,
            env=environment(home.path, home.env()),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert child.stderr
        for line in child.stderr:
            if " %" in line:  # the file is being written
                break
        child.send_signal(signal.SIGINT)
        out, rest = child.communicate(timeout=30)
        assert (child.returncode, out) == (130, "")
        assert rest.endswith("midfill: interrupted. What has come is kept: the same command goes on from there.\n")
        assert home.files() == {f"blobs/{SHA}.incomplete"}
        assert home.found() is None
        kept = home.partial.stat().st_size
        hub.release()
        hub.reset()
        pulled(home, home.pull())
        assert [seen.headers.get("range") for seen in hub.transfers] == [f"bytes={kept}-"]
        assert kept >= len(CONTENT) // 4

    @posix
    def test_killed_and_what_it_left_is_damaged(self, home: Home, hub: Hub) -> None:
        """Half of another file under this name: the checksum says so, and the next pull is well."""
        home.partial.parent.mkdir(parents=True)
        home.partial.write_bytes(b"x" * HALF)
        failed(home, home.pull(), 3, "came damaged", "pull it again")
        assert home.files() == set()
        pulled(home, home.pull())

    def test_a_wrong_checksum(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(garble=True)]
        failed(home, home.pull(), 3, "came damaged", "pull it again")
        assert home.files() == set()

    def test_more_comes_than_there_is(self, home: Home, hub: Hub) -> None:
        hub.claims["x-linked-size"] = "1000"
        failed(home, home.pull(), 3, "came damaged")
        assert home.files() == set()

    def test_more_than_the_whole_file_was_left(self, home: Home) -> None:
        home.partial.parent.mkdir(parents=True)
        home.partial.write_bytes(CONTENT + b"x")
        pulled(home, home.pull())

    def test_all_of_it_was_left_but_its_name(self, home: Home, hub: Hub) -> None:
        home.partial.parent.mkdir(parents=True)
        home.partial.write_bytes(CONTENT)
        pulled(home, home.pull())
        assert hub.transfers == []

    def test_two_at_once(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(after=HALF, hold=True)]
        command = [sys.executable, "-m", "lsp_server", "models", "pull", NAME]
        env = environment(home.path, home.env())
        first = subprocess.Popen(command, cwd=home.path, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        assert first.stderr
        first.stderr.readline()  # it has the lock
        failed(home, home.pull(), 3, "is being pulled by another program")
        hub.release()
        assert first.communicate(timeout=60)[0]
        assert first.returncode == 0


class TestDisk:
    def test_no_room_is_said_before_anything_is_fetched(self, home: Home, hub: Hub) -> None:
        hub.claims["x-linked-size"] = str(10**15)
        failed(home, home.pull(), 3, "There is no room in", "GB more are needed", "HF_HOME")
        assert hub.transfers == []

    @posix
    def test_a_disk_that_fills_up(self, home: Home, hub: Hub) -> None:
        """A limit of the system's on files stands for it: writing fails in the same place. The next pull goes on."""
        command = f"ulimit -f 1000; exec '{sys.executable}' -m lsp_server models pull {NAME}"
        env = environment(home.path, home.env())
        done = subprocess.run(
            ["sh", "-c", command], cwd=home.path, env=env, capture_output=True, text=True, check=False
        )
        failed(home, done, 3, "There is no room in", "the same command goes on")
        kept = home.partial.stat().st_size
        assert 0 < kept < len(CONTENT)
        hub.reset()
        pulled(home, home.pull())
        assert [seen.headers.get("range") for seen in hub.transfers] == [f"bytes={kept}-"]

    @posix
    @pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written_to(self, home: Home) -> None:
        (home.path / "hf").mkdir(mode=0o500)
        failed(home, home.pull(), 2, "Permission denied", "Set HF_HOME")

    @posix
    def test_a_folder_that_is_a_file(self, home: Home) -> None:
        (home.path / "hf").write_text("")
        failed(home, home.pull(), 2, "Not a directory", "Set HF_HOME")


class TestRefused:
    def test_a_licence_that_was_not_accepted(self, home: Home, hub: Hub) -> None:
        hub.gated.add(REPO)
        hub.login = TOKEN
        failed(home, home.pull(), 3, "is gated. Accept its licence", "HF_TOKEN", f"{hub.url}/{REPO}")
        hub.head = Fault(status=403, headers=(("x-error-code", "GatedRepo"),))
        failed(home, home.pull(HF_TOKEN=TOKEN), 3, "The account of your token has not accepted its licence")

    def test_a_token_that_is_none(self, home: Home, hub: Hub) -> None:
        failed(home, home.pull(HF_TOKEN=TOKEN), 3, "HF_TOKEN was not accepted")

    def test_nothing_of_that_name(self, home: Home, hub: Hub) -> None:
        done = home.pull("me/Nothing:m.gguf")
        assert (done.returncode, done.stdout) == (3, "")
        assert "There is no repository me/Nothing" in done.stderr
        assert "HF_TOKEN" in done.stderr
        hub.login = TOKEN
        assert "your token does not open it" in home.pull("me/Nothing:m.gguf", HF_TOKEN=TOKEN).stderr
        done = home.pull(f"{REPO}:other.gguf")
        assert done.returncode == 3
        assert f"{REPO} has no file other.gguf. See {hub.url}/{REPO}/tree/main" in done.stderr
        done = home.pull(f"{NAME}@nope")
        assert done.returncode == 3
        assert f"{REPO} has no revision nope" in done.stderr

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (Fault(status=429, headers=(("retry-after", "17"),)), ("(429)", "in 17 s", "HF_TOKEN")),
            (Fault(status=429, headers=(("ratelimit", '"resolvers";r=0;t=55'),)), ("in 55 s",)),
            (Fault(status=429), ("in a few minutes",)),
            (Fault(status=500), ("answered 500", "Try again later")),
            (Fault(status=401), ("(401)", "set HF_TOKEN")),
            (Fault(status=403), ("(403)", "/me/Tiny-Coder-GGUF")),
            (Fault(status=418), ("answered 418",)),
        ],
    )
    def test_what_the_hub_refuses(self, home: Home, hub: Hub, fault: Fault, words: tuple[str, ...]) -> None:
        hub.head = fault
        failed(home, home.pull(), 3, *words)

    def test_what_the_storage_refuses(self, home: Home, hub: Hub) -> None:
        hub.faults = [Fault(after=HALF), Fault(status=403)]
        failed(home, home.pull(), 3, "(403)")
        assert home.partial.stat().st_size == HALF

    @pytest.mark.parametrize(
        "claims", [{"x-repo-commit": ""}, {"x-linked-etag": "../../../x"}, {"x-repo-commit": ".."}]
    )
    def test_something_that_is_no_hub(self, home: Home, hub: Hub, claims: dict[str, str]) -> None:
        hub.claims = claims
        failed(home, home.pull(), 3, hub.url)
        assert hub.transfers == []

    def test_a_name_and_a_token_that_the_library_refuses(self, home: Home, hub: Hub) -> None:
        done = home.pull("me/a--b:m.gguf")
        assert (done.returncode, done.stdout) == (2, "")
        assert "midfill: me/a--b is no name of a repository" in done.stderr
        failed(home, home.pull(HF_TOKEN="caf\u00e9"), 3, "HF_TOKEN holds characters")
        for variables in ({"HF_HUB_DOWNLOAD_TIMEOUT": "soon"}, {"HF_ENDPOINT": "http://[::1"}):
            failed(home, home.pull(**variables), 2, "A variable HF_")
        assert hub.log == []

    @pytest.mark.parametrize("endpoint", ["nonsense", "ftp://127.0.0.1"])
    def test_an_endpoint_that_is_none(self, home: Home, endpoint: str) -> None:
        failed(home, home.pull(HF_ENDPOINT=endpoint), 3, endpoint, "HF_ENDPOINT")

    def test_the_library_is_missing(self, home: Home, hub: Hub) -> None:
        """The rest of `models` needs none."""
        (home.path / "sitecustomize.py").write_text("import sys\nsys.modules['huggingface_hub'] = None\n")
        path = os.pathsep.join([str(home.path), str(ROOT)])
        failed(home, home.pull(PYTHONPATH=path), 2, "Pulling needs huggingface-hub", "pip install huggingface-hub")
        assert home.run("list", PYTHONPATH=path).returncode == 0
        assert hub.log == []

    def test_nobody_there(self, home: Home, hub: Hub) -> None:
        failed(home, home.pull(HF_ENDPOINT="http://127.0.0.1:9"), 3, "cannot be reached", "HF_ENDPOINT", "HTTPS_PROXY")

    def test_offline(self, home: Home, hub: Hub) -> None:
        failed(home, home.pull(HF_HUB_OFFLINE="1"), 2, "HF_HUB_OFFLINE is set")
        assert hub.log == []
        home.pull()
        pulled(home, home.pull(HF_HUB_OFFLINE="1"))

    @pytest.mark.parametrize(
        "model", ["nothing", "me/Repo", "me/Repo:model.bin", "me/Repo:../m.gguf", "me/Repo:m-00001-of-00002.gguf"]
    )
    def test_no_usable_name(self, home: Home, hub: Hub, model: str) -> None:
        done = home.pull(model)
        assert (done.returncode, done.stdout) == (2, "")
        assert hub.log == []
