"""Backends that fail, rest, come back and stand in for one another, as an editor sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import KEY, KEY_ENV, Editor, messages, settings, until
from tests.lsp_client import LspClient
from tests.services.ffm import Answer, FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
INVOKED = 1
SECOND = """
[backends.second]
kind = "ffm"
url = "{url}"
model = "qwen2.5-coder-7b-32k"
key_env = "{key_env}"
"""


def both(config: Path, first: str, second: str, more: str = "") -> None:
    text = settings(first, more=SECOND.format(url=second, key_env=KEY_ENV))
    config.write_text(more + text.replace('backend = "work"', 'backend = ["work", "second"]'), encoding="utf-8")


class Typing:
    """Types a new line for each request, so that no answer comes from the cache."""

    def __init__(self, client: LspClient) -> None:
        self.client = client
        self.line = 0
        client.open(URI, "")

    def ask(self, kind: int = 2) -> str | None:
        self.client.change(URI, self.line + 2, (self.line, 0), f"name_{self.line} = \n")
        items = self.client.items(URI, (self.line, len(f"name_{self.line} = ")), kind)
        self.line += 1
        return str(items[0]["insertText"]) if items else None


def test_a_refused_key_opens_the_breaker_and_asking_explicitly_tries_again(editor: Editor, ffm: FfmService) -> None:
    ffm.reset(Answer(status=401, detail="Invalid API key"))
    client = editor()
    typing = Typing(client)
    for _ in range(5):
        assert typing.ask() is None
    assert len(ffm.log) == 1, "the others did not reach it"
    assert client.reasons()["breaker-open"] == 4
    assert client.command("midfill.status")["backends"][0]["resting"] is True
    assert client.command("midfill.explain", URI)[0]["failures"] == ["work:breaker-open"]
    ffm.reset(Answer(deltas=("good",)))
    assert typing.ask(INVOKED) == "good"
    assert typing.ask() == "good"
    assert client.command("midfill.status")["backends"][0]["resting"] is False
    assert len(messages(client)) == 1
    assert [each for each in client.logged if "answers again" in each] == ["The backend work answers again."]
    client.shut_down()


def test_other_settings_of_a_backend_close_its_breaker(editor: Editor, ffm: FfmService) -> None:
    ffm.reset(Answer(status=402, detail="no balance"), Answer(deltas=("good",)))
    client = editor()
    typing = Typing(client)
    assert (typing.ask(), typing.ask(), len(ffm.log)) == (None, None, 1)
    client.notify("workspace/didChangeConfiguration", {"settings": {"backends": {"work": {"timeoutS": 9}}}})
    assert typing.ask() == "good"
    assert len(messages(client)) == 1
    client.shut_down()


def test_the_second_stands_in_for_the_first(editor: Editor, ffm: FfmService, config: Path) -> None:
    with FfmService(key=KEY, script=[Answer(deltas=("first",))]) as gone:
        pass
    ffm.reset(Answer(deltas=("second",)))
    both(config, gone.url, ffm.url)
    client = editor()
    typing = Typing(client)
    assert [typing.ask() for _ in range(5)] == ["second"] * 5
    (told,) = messages(client)
    assert "cannot be reached" in told
    assert told.endswith("Until it answers again, the backend second is asked.")
    last = client.command("midfill.explain", URI)[0]
    assert (last["backend"], last["failures"]) == ("second", ["work:breaker-open"])
    status = client.command("midfill.status")
    assert [(each["name"], each["resting"]) for each in status["backends"]] == [("work", True), ("second", False)]
    with FfmService(key=KEY, port=gone.port, script=[Answer(deltas=("first",))]):
        assert typing.ask(INVOKED) == "first"
        assert typing.ask() == "first"
        assert messages(client) == []
        client.shut_down()
    assert len([each for each in client.logged if each == "The backend work answers again."]) == 1


def test_a_slow_first_is_hedged_and_cancelled(editor: Editor, ffm: FfmService, config: Path) -> None:
    with FfmService(key=KEY, script=[Answer(deltas=("first",), hold_after=0)]) as slow:
        ffm.reset(Answer(deltas=("second",)))
        both(config, slow.url, ffm.url, "hedge_ms = 50\n")
        client = editor()
        typing = Typing(client)
        assert typing.ask() == "second"
        until(slow, disconnected=1)
        last = client.command("midfill.explain", URI)[0]
        assert (last["backend"], last["failures"]) == ("second", [])
        slow.reset(Answer(deltas=("first",)))
        client.notify("workspace/didChangeConfiguration", {"settings": {"hedgeMs": 60_000}})
        assert typing.ask() == "first"
        assert messages(client) == []
        client.shut_down()
    assert len(ffm.log) == 1
