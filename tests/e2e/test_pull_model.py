"""A model is pulled from within an editor: progress, path, errors, and nobody waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import answer_as
from tests.lsp_client import LspClient, LspError, client_params, stdio_server
from tests.lsp_server.pulling import CONTENT, FILE, NAME, REPO, Home
from tests.services.hub import Fault, Hub

pytestmark = pytest.mark.e2e
pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.files[f"{REPO}/{FILE}"] = CONTENT
        yield hub


@pytest.fixture
def client(tmp_path: Path, hub: Hub) -> Iterator[LspClient]:
    config = tmp_path / "config.toml"
    config.write_text("[completion]\nenabled = false\n", encoding="utf-8")  # no model is loaded
    with stdio_server("--config", str(config), environ=Home(tmp_path, hub).env()) as client:
        params = client_params("neovim-0.12")
        params["capabilities"].setdefault("window", {})["workDoneProgress"] = True
        answer_as(client, params["capabilities"])
        client.answers["window/workDoneProgress/create"] = lambda _: None
        client.initialize(params)
        yield client


def test_it_comes_with_progress(client: LspClient, hub: Hub) -> None:
    found = client.command("midfill.pullModel", NAME)
    assert Path(found["path"]).read_bytes() == CONTENT
    value = {"kind": "begin", "title": ""}
    shown = []
    while value["kind"] != "end":
        value = client.notification("$/progress")["value"]
        shown.append((value["kind"], value.get("percentage", 0)))
        assert NAME in value.get("title", NAME)
    assert shown[0][0] == "begin"
    assert [percentage for _, percentage in shown[:-1]] == sorted(percentage for _, percentage in shown[:-1])
    assert client.command("midfill.pullModel", NAME) == found  # at once, without asking the hub
    client.shut_down()


def test_what_goes_wrong_is_said(client: LspClient, hub: Hub) -> None:
    hub.files.clear()
    found = client.command("midfill.pullModel", NAME)
    assert REPO in found["error"]
    client.shut_down()


def test_the_server_answers_meanwhile_and_ends_without_it(client: LspClient, hub: Hub) -> None:
    hub.faults.append(Fault(after=1000, hold=True))
    number = client.request("workspace/executeCommand", {"command": "midfill.pullModel", "arguments": [NAME]})
    client.notification("$/progress")
    assert client.command("midfill.status")["enabled"]
    client.cancel(number)
    with pytest.raises(LspError, match="cancelled"):
        client.result(number)
    client.shut_down()
    hub.release()


def test_whoever_does_not_wait_any_more_ends_it(client: LspClient, hub: Hub, tmp_path: Path) -> None:
    hub.faults.append(Fault(after=1000, hold=True))
    number = client.request("workspace/executeCommand", {"command": "midfill.pullModel", "arguments": [NAME]})
    client.notification("$/progress")
    client.cancel(number)
    with pytest.raises(LspError, match="cancelled"):
        client.result(number)
    hub.release()
    until_end(client)
    assert list(tmp_path.rglob("*.gguf")) == []
    found = client.command("midfill.pullModel", NAME)
    assert Path(found["path"]).read_bytes() == CONTENT
    assert hub.transfers[-1].headers["range"].startswith("bytes=")  # what had come was kept
    until_end(client)
    client.shut_down()


def test_it_goes_on_for_another_who_waits(client: LspClient, hub: Hub) -> None:
    hub.faults.append(Fault(after=1000, hold=True))
    params = {"command": "midfill.pullModel", "arguments": [NAME]}
    first, second = (client.request("workspace/executeCommand", params) for _ in range(2))
    client.notification("$/progress")
    client.cancel(first)
    with pytest.raises(LspError, match="cancelled"):
        client.result(first)
    hub.release()
    assert Path(client.result(second)["path"]).read_bytes() == CONTENT
    until_end(client)
    client.shut_down()


def until_end(client: LspClient) -> None:
    while client.notification("$/progress")["value"]["kind"] != "end":
        pass
