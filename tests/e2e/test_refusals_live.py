"""What the server does not start or send, and what it says about that."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, Editor, messages, script
from tests.services.ffm import Answer, FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
AT = (1, 4)
TEXT = "x = 1\ny = \n"
FAR = "http://192.0.2.1/api"  # a network for documents: never reached


def entry(folder: Path, name: str, url: str) -> str:
    """A backend whose key command leaves a file behind."""
    code = f"open({str(folder / (name + '.ran'))!r}, 'w').close(); print({KEY!r})"
    command = json.dumps([sys.executable, "-c", code])
    return f'[backends.{name}]\nkind = "ffm"\nmodel = "codellama-7b"\nurl = "{url}"\nkey_command = {command}\n'


def ran(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.ran"))


@pytest.mark.parametrize("privacy", ["allow_remote = false", 'allow_remote = "no"', "ignore = 3"])
def test_a_service_that_is_not_allowed(editor: Editor, config: Path, tmp_path: Path, privacy: str) -> None:
    config.write_text(f"[privacy]\n{privacy}\n" + entry(tmp_path, "work", FAR), encoding="utf-8")
    client = editor()
    client.open(URI, TEXT)
    assert client.items(URI, AT) == []
    told = messages(client)
    assert any("The backend 'work' is remote and privacy." in each for each in told)
    assert client.reasons()["no-backend"] == 1
    assert "is remote and privacy." in client.command("midfill.explain", URI)[0]["detail"]
    assert ran(tmp_path) == []
    client.shut_down()


def test_a_stand_in_is_not_prepared_before_its_turn(
    editor: Editor, ffm: FfmService, config: Path, tmp_path: Path
) -> None:
    """One on this machine is: a model has to be loaded. So what comes after it shows that it was passed over."""
    broken = entry(tmp_path, "broken", FAR).replace("print(", "raise SystemExit(3) #(")
    rest = entry(tmp_path, "far", FAR) + entry(tmp_path, "near", ffm.url)
    config.write_text('backend = ["broken", "far", "near"]\n' + broken + rest, encoding="utf-8")
    client = editor()
    client.wait_until(lambda: any("backend near is ready" in each for each in client.logged))
    assert ran(tmp_path) == ["broken", "near"]
    assert "exit code 3" in messages(client)[0]
    client.shut_down()


def test_nothing_is_started_where_completion_is_off(
    editor: Editor, ffm: FfmService, config: Path, tmp_path: Path
) -> None:
    script(ffm, "good")
    config.write_text("[completion]\nenabled = false\n" + entry(tmp_path, "work", ffm.url), encoding="utf-8")
    client = editor()
    client.open(URI, TEXT)
    assert client.items(URI, AT) == []
    assert ran(tmp_path) == []
    client.notify("workspace/didChangeConfiguration", {"settings": {"completion": {"enabled": True}}})
    assert len(client.items(URI, AT)) == 1
    assert ran(tmp_path) == ["work"]
    client.shut_down()


def test_ignored_without_a_workspace(editor: Editor, ffm: FfmService, config: Path) -> None:
    config.write_text(config.read_text() + '[privacy]\nignore = ["secrets/*"]\n', encoding="utf-8")
    client = editor("vim-9.0", rootUri=None, rootPath=None, workspaceFolders=None)
    for uri in ("file:///w/secrets/c.py", "file:///w/app/secrets/c.py", "untitled:secrets/c.py"):
        client.open(uri, TEXT)
        assert client.items(uri, AT) == []
    assert (client.reasons()["ignored-file"], ffm.log) == (3, [])
    client.shut_down()


@pytest.mark.parametrize(
    ("settings", "words"),
    [('backend = "zzz"\n', 'backend: "zzz" is not'), ("[backends.work]\n", "backends.work.kind: missing")],
)
def test_the_cause_comes_first(editor: Editor, config: Path, settings: str, words: str) -> None:
    config.write_text(settings, encoding="utf-8")
    client = editor()
    client.open(URI, TEXT)
    assert client.items(URI, AT) == []
    told = messages(client)
    assert words in told[0]
    assert not any("No model is set up" in each for each in told)
    client.shut_down()


def test_explain_says_what_failed_and_what_was_sent(editor: Editor, ffm: FfmService) -> None:
    ffm.reset(Answer(status=402, detail="no balance"))
    client = editor()
    client.open(URI, TEXT + "CANARY = 1\n")
    assert client.items(URI, AT) == []
    explained = client.command("midfill.explain", URI)[0]
    assert explained["reason"] == "backend-error"
    assert "answered HTTP 402" in explained["detail"]
    assert "CANARY" in explained.pop("prompt")
    assert "CANARY" not in json.dumps(explained)
    assert [piece["source"] for piece in explained["pieces"]] == ["window"]
    assert "source window, score 1.00" in explained["explained"]
    assert "HTTP 402" in messages(client)[0]
    client.shut_down()
