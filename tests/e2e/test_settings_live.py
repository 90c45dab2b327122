"""Settings that change, backends that fail and come back: what the user sees, and how often."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import KEY, Editor, messages, script, settings, until
from tests.services.ffm import Answer, FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
TEXT = "x = 1\ny = \n"
AT = (1, 4)


def test_the_client_is_asked_for_settings_and_again_when_they_change(editor: Editor, ffm: FfmService) -> None:
    client = editor("vscode-1.139")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    asked = [each for each in client.server_requests if each["method"] == "workspace/configuration"]
    assert asked[0]["params"] == {"items": [{"section": "midfill"}]}
    registered = [each for each in client.server_requests if each["method"] == "client/registerCapability"]
    by_method = {each["method"]: each["registerOptions"] for each in registered[0]["params"]["registrations"]}
    assert by_method["textDocument/inlineCompletion"] == {"documentSelector": None}
    assert by_method["workspace/didChangeConfiguration"] == {"section": "midfill"}
    assert by_method["workspace/didChangeWatchedFiles"] == {"watchers": [{"globPattern": "**/.midfill.toml"}]}

    client.answers["workspace/configuration"] = lambda params: [{"completion": {"enabled": False, "maxTokens": None}}]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    client.await_reasons({"shown": 1})
    while client.items(URI, AT):  # until the client's answer has arrived there
        pass
    assert client.reasons()["disabled"] == 1
    client.answers["workspace/configuration"] = lambda params: [{"completion": {"enabled": True}}]
    client.notify("workspace/didChangeConfiguration", {"settings": None})
    while not client.items(URI, AT):
        pass
    client.shut_down()


def test_settings_pushed_by_a_client_that_cannot_be_asked(editor: Editor, ffm: FfmService) -> None:
    client = editor("vim-9.0", initializationOptions={"completion": {"enabled": False}})
    client.open(URI, TEXT)
    assert client.items(URI, AT) == []
    client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"completion": {"enabled": True}}}})
    assert len(client.items(URI, AT)) == 1
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    assert client.items(URI, AT) == []
    client.shut_down()


def test_a_change_of_backend_answers_what_is_pending(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "old", hold_after=1)
    client = editor()
    client.open(URI, TEXT)
    pending = client.ask(URI, AT)
    until(ffm, generating=1)
    with FfmService(key=KEY, script=[Answer(deltas=("new",))]) as other:
        changed = {"backends": {"work": {"url": other.url}}}
        client.notify("workspace/didChangeConfiguration", {"settings": changed})
        assert client.result(pending) == {"items": []}
        until(ffm, disconnected=1)
        assert client.items(URI, AT)[0]["insertText"] == "new"
        assert len(other.log) == 1
        client.shut_down()


def test_other_engine_settings_keep_the_backend(editor: Editor, ffm: FfmService) -> None:
    client = editor()
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    client.notify("workspace/didChangeConfiguration", {"settings": {"completion": {"maxTokens": 7}}})
    assert len(client.items(URI, AT)) == 1
    assert [seen.body["parameters"]["max_new_tokens"] for seen in ffm.log][-1] == 7
    assert len({seen.port for seen in ffm.log}) == 1, "the connection is the same"
    client.shut_down()


def test_a_wrong_setting_is_told_once_and_the_server_works(editor: Editor, ffm: FfmService) -> None:
    client = editor("vim-9.0", initializationOptions={"completion": {"debounceMs": "soon"}, "colour": 1})
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    told = messages(client)
    assert len(told) == 2
    assert any("completion.debounce_ms" in each or "completion.debounceMs" in each for each in told)
    client.notify("workspace/didChangeConfiguration", {"settings": {"completion": {"debounceMs": "soon"}}})
    assert len(client.items(URI, AT)) == 1
    assert messages(client) == []
    changed = {"completion": {"debounceMs": "soon"}, "backends": {"work": {"timeoutS": 9}}}
    client.notify("workspace/didChangeConfiguration", {"settings": changed})
    assert len(client.items(URI, AT)) == 1
    assert messages(client) == [], "another backend, the same problems"
    client.shut_down()


def test_project_file_is_read_and_read_again(editor: Editor, ffm: FfmService, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    file = root / ".midfill.toml"
    file.write_text(
        "[completion]\nenabled = false\n[backends.work]\nurl = 'http://attacker.example'\n", encoding="utf-8"
    )
    client = editor("vim-9.0", workspaceFolders=[{"uri": root.as_uri(), "name": "project"}])
    client.open(URI, TEXT)
    assert client.items(URI, AT) == []
    (told,) = messages(client)
    assert "backends" in told
    file.write_text("", encoding="utf-8")
    client.notify("textDocument/didSave", {"textDocument": {"uri": file.as_uri()}})
    assert len(client.items(URI, AT)) == 1
    file.write_text("[completion]\nenabled = false\n", encoding="utf-8")
    client.notify("workspace/didChangeWatchedFiles", {"changes": [{"uri": file.as_uri(), "type": 2}]})
    assert client.items(URI, AT) == []
    removed = {"event": {"added": [], "removed": [{"uri": root.as_uri(), "name": "project"}]}}
    client.notify("workspace/didChangeWorkspaceFolders", removed)
    assert len(client.items(URI, AT)) == 1
    client.shut_down()


def test_an_error_is_told_once_in_twenty_keystrokes(editor: Editor, ffm: FfmService) -> None:
    ffm.reset(Answer(status=401, detail="Invalid API key"))
    client = editor()
    client.open(URI, TEXT)
    for key in range(20):
        client.change(URI, key + 2, (1, 4 + key), "a")
        assert client.items(URI, (1, 5 + key)) == []
    assert len(messages(client)) == 1
    client.shut_down()
    assert KEY not in client.stderr + str(client.everything)


def test_backend_down_and_back_up(editor: Editor, ffm: FfmService, config: Path, tmp_path: Path) -> None:
    gone = FfmService(key=KEY)
    with gone:
        config.write_text(settings(gone.url), encoding="utf-8")
        client = editor()
        client.open(URI, TEXT)
        assert len(client.items(URI, AT)) == 1
    client.change(URI, 2, (0, 0), "# 1\n")
    assert client.items(URI, (2, 4)) == []
    assert len(messages(client)) == 1
    with FfmService(key=KEY, port=gone.port):
        client.change(URI, 3, (0, 0), "# 2\n")
        assert len(client.items(URI, (3, 4))) == 1
        client.shut_down()


def test_the_key_is_seen_by_the_service_alone(editor: Editor, ffm: FfmService, trace: Path) -> None:
    client = editor("vscode-1.139", "--verbose", "--trace-text")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    ffm.reset(Answer(status=500, detail=f"no {KEY}"))
    client.change(URI, 2, (0, 0), "# 1\n")
    client.items(URI, (2, 4))
    messages(client)
    explained = client.command("midfill.explain", URI)
    assert client.command("midfill.explain")[0] == explained[0]
    assert explained[0]["prompt"] is not None
    client.shut_down()
    assert KEY in ffm.log[0].headers["x-api-key"]
    seen: list[Any] = [client.stderr, client.everything, client.logged, explained, trace.read_text(encoding="utf-8")]
    for place in seen:
        assert KEY not in str(place)


def test_source_text_is_logged_only_when_verbose(editor: Editor, ffm: FfmService, trace: Path) -> None:
    script(ffm, "ANSWER_CANARY")
    client = editor("neovim-0.12")
    client.open(URI, "SOURCE_CANARY = \n")
    assert len(client.items(URI, (0, 16))) == 1
    client.command("midfill.explain", URI)
    client.shut_down()
    for place in (client.stderr, str(client.logged), trace.read_text(encoding="utf-8")):
        assert "CANARY" not in place
    assert URI not in trace.read_text(encoding="utf-8")


def test_commands(editor: Editor, ffm: FfmService) -> None:
    client = editor()
    client.open(URI, TEXT)
    (item,) = client.items(URI, AT)
    name = item["command"]["arguments"][0]
    client.notify("textDocument/didShowCompletion", {"item": item})
    client.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 3})
    for _ in range(2):  # each suggestion counts once
        assert client.command("midfill.accept", name) is None
        assert client.command("midfill.reject", "of nobody") is None
    status = client.command("midfill.status")
    fates = ("displayed", "partiallyAccepted", "accepted", "rejected")
    assert tuple(status[fate] for fate in fates) == (1, 1, 1, 0)
    assert status["languages"] == {"python": {"shown": 1, "partiallyAccepted": 1, "accepted": 1, "rejected": 0}}
    assert (status["backend"], status["kind"], status["documents"], status["enabled"]) == ("work", "ffm", 1, True)
    assert client.command("midfill.toggle") == {"enabled": False}
    assert client.items(URI, AT) == []
    assert client.command("midfill.toggle") == {"enabled": True}
    begun = len(ffm.log)
    assert len(client.items(URI, AT)) == 1
    assert len(ffm.log) == begun, "from the cache"
    assert client.command("midfill.explain", URI)[0]["cache"] == "hit"
    client.command("midfill.clearCache")
    assert len(client.items(URI, AT)) == 1
    assert len(ffm.log) == begun + 1
    client.shut_down()


def test_many_changes_in_a_row_replace_the_backend_once_or_twice(editor: Editor, ffm: FfmService) -> None:
    client = editor()
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    sent, asked = [], []
    for number in range(60):
        changed = {"backends": {"work": {"timeoutS": 5 + number}}, "completion": {"maxTokens": 8 + number}}
        sent.append(client.message("workspace/didChangeConfiguration", {"settings": {"midfill": changed}}))
        sent.append(message := client.complete_message(URI, AT))
        asked.append(message["id"])
    client.send(*sent)
    answers = [client.result(each)["items"] for each in asked]
    assert len(answers[-1]) == 1, "the last one supersedes the others"
    assert ffm.log[-1].body["parameters"]["max_new_tokens"] == 8 + 59
    assert client.logged.count("backend work is ready, model qwen2.5-coder-7b-32k") <= 3
    client.shut_down()


def test_a_second_change_of_backends_waits_and_so_do_requests(editor: Editor, ffm: FfmService) -> None:
    client = editor()
    client.open(URI, TEXT)
    for number in range(3):
        with FfmService(key=KEY, script=[Answer(deltas=(f"answer {number}",))]) as other:
            changed = {"backends": {"work": {"url": other.url}}}
            client.notify("workspace/didChangeConfiguration", {"settings": changed})
            assert client.items(URI, AT)[0]["insertText"] == f"answer {number}"
    assert ffm.log == []
    client.shut_down()
