"""Requests that are cancelled, superseded, overtaken by edits, or senseless: one answer each, never a wrong range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Editor, script, settings, until
from tests.lsp_client import LspClient, LspError, client_params, frame, stdio_server
from tests.services.ffm import Answer, FfmService

pytestmark = pytest.mark.e2e

URI = "file:///home/user/project/app.py"
TEXT = "x = 1\ny = \n"
AT = (1, 4)


def opened(editor: Editor, *arguments: str, **options: Any) -> LspClient:
    client = editor("vim-9.0", *arguments, **options)
    client.open(URI, TEXT)
    return client


def test_cancel_is_answered_and_closes_the_connection(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "return 1", hold_after=1)
    client = opened(editor)
    asked = client.ask(URI, AT)
    until(ffm, generating=1)
    client.cancel(asked)
    with pytest.raises(LspError) as raised:
        client.result(asked)
    assert raised.value.code == -32800
    until(ffm, disconnected=1)
    script(ffm, "2")
    assert client.items(URI, AT)[0]["insertText"] == "2"
    client.await_reasons({"cancelled": 1, "shown": 1})
    client.shut_down()


def test_cancel_in_the_same_segment_begins_no_work(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    asked = client.complete_message(URI, AT)
    client.send(asked, client.message("$/cancelRequest", {"id": asked["id"]}))
    with pytest.raises(LspError) as raised:
        client.result(asked["id"])
    assert raised.value.code == -32800
    client.cancel(asked["id"])  # again, and one that never was: both are ignored
    client.cancel("unknown")
    client.notify("$/cancelRequest", None)
    client.await_reasons({"cancelled": 1})
    assert ffm.log == []
    client.shut_down()


def test_a_newer_request_supersedes_and_both_are_answered(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "first", hold_after=1)
    client = opened(editor)
    old = client.ask(URI, AT)
    until(ffm, generating=1)
    script(ffm, "second")
    new = client.ask(URI, (0, 5))
    assert client.result(old) == {"items": []}
    assert client.result(new)["items"][0]["insertText"] == "second"
    assert client.reasons() == {"superseded": 1, "shown": 1}
    client.shut_down()


def test_two_documents_do_not_supersede_each_other(editor: Editor, ffm: FfmService) -> None:
    other = "file:///home/user/project/other.py"
    script(ffm, "11", hold_after=1)
    client = opened(editor)
    client.open(other, "z = \n")
    first = client.ask(URI, AT)
    until(ffm, generating=1)
    second = client.ask(other, (0, 4))
    until(ffm, generating=2)
    ffm.release()
    (one,) = client.result(first)["items"]
    (two,) = client.result(second)["items"]
    assert (one["range"]["start"]["line"], two["range"]["start"]["line"]) == (1, 0)
    assert [seen.body["inputs"].count("<FILL_ME>") for seen in ffm.log] == [1, 1]
    assert client.reasons() == {"shown": 2}
    client.shut_down()


def test_an_answer_to_a_text_that_moved_away_is_empty(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = opened(editor)
    asked = client.ask(URI, AT)
    until(ffm, generating=1)
    client.change(URI, 2, (0, 0), "# comment\n")
    client.command("midfill.status")  # the change was handled
    ffm.release()
    assert client.result(asked) == {"items": []}
    assert client.reasons() == {"stale": 1}
    client.shut_down()


def test_an_answer_whose_beginning_was_typed_meanwhile_fits_the_text_as_it_is(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = opened(editor)
    asked = client.ask(URI, AT)
    until(ffm, generating=1)
    client.change(URI, 2, AT, "ca")
    client.command("midfill.status")
    ffm.release()
    (item,) = client.result(asked)["items"]
    assert item["insertText"] == "call(1)"
    assert item["range"] == {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 6}}
    client.shut_down()


def test_an_answer_to_a_document_closed_meanwhile_is_empty(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = opened(editor)
    asked = client.ask(URI, AT)
    until(ffm, generating=1)
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert client.result(asked) == {"items": []}
    until(ffm, disconnected=1)
    client.shut_down()


@pytest.mark.parametrize("tcp", [False, True])
def test_an_edit_in_the_same_segment_does_not_shift_the_request(editor: Editor, ffm: FfmService, tcp: bool) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = opened(editor, tcp=tcp)
    asked = client.complete_message(URI, AT)
    client.send(asked, client.change_message(URI, 2, (0, 0), "# \U0001f642\n"))
    until(ffm, generating=1)
    assert ffm.log[0].body["inputs"] == "x = 1\ny = <FILL_ME>\n"
    ffm.release()
    assert client.result(asked["id"]) == {"items": []}
    script(ffm, "2")
    (item,) = client.items(URI, (2, 4))
    assert item["range"]["start"]["line"] == 2
    client.shut_down()


MALFORMED: list[tuple[str, Any]] = [
    ("textDocument/inlineCompletion", None),
    ("textDocument/inlineCompletion", []),
    ("textDocument/inlineCompletion", {"textDocument": {"uri": URI}}),
    ("textDocument/inlineCompletion", {"textDocument": URI, "position": {"line": 0, "character": 0}}),
    ("textDocument/inlineCompletion", {"textDocument": {"uri": URI}, "position": {"line": -1, "character": 0}}),
    ("textDocument/inlineCompletion", {"textDocument": {"uri": URI}, "position": {"line": "SECRET", "character": 0}}),
    ("textDocument/completion", {"textDocument": {"uri": URI}}),
    ("workspace/executeCommand", {"command": "midfill.nothing"}),
    ("workspace/executeCommand", {"command": "midfill.accept", "arguments": [{"SECRET": 1}]}),
    ("workspace/executeCommand", {}),
    ("initialize", {"capabilities": {}}),
]


def test_requests_that_make_no_sense(editor: Editor) -> None:
    client = opened(editor)
    for method, params in MALFORMED:
        with pytest.raises(LspError) as raised:
            client.call(method, params)
        assert raised.value.code == -32602, (method, params)
        assert set(raised.value.error) == {"code", "message"}
    with pytest.raises(LspError) as raised:
        client.call("textDocument/hover", {})
    assert raised.value.code == -32601
    client.shut_down()
    assert "SECRET" not in client.stderr + str(client.everything)
    assert "Traceback" not in client.stderr


def test_lenient_where_clients_differ(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    plain = {"textDocument": {"uri": URI, "version": 7}, "position": {"line": 1, "character": 4, "more": 1}, "new": {}}
    contexts: list[Any] = [
        None,
        {},
        {"triggerKind": 0},
        {"triggerKind": 1},
        {"triggerKind": 2, "x": []},
        {"triggerKind": 9},
    ]
    for context in contexts:
        assert len(client.call("textDocument/inlineCompletion", {**plain, "context": context})["items"]) == 1
    assert len(client.call("textDocument/inlineCompletion", plain)["items"]) == 1
    selected = {"range": {"start": {"line": 1, "character": 4}, "end": {"line": 1, "character": 4}}, "text": "return x"}
    context = {"triggerKind": 1, "selectedCompletionInfo": selected}
    client.call("textDocument/inlineCompletion", {**plain, "context": context})
    client.shut_down()


def test_positions_outside_the_document_are_clamped(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    for at, line in [((1, 4000), 1), ((900, 3), 2), ((2, 0), 2)]:
        for item in client.items(URI, at):
            start, end = item["range"]["start"], item["range"]["end"]
            assert start["line"] == end["line"] == line
            assert start["character"] == end["character"] == (4 if line == 1 else 0)
    client.shut_down()


def test_documents_that_are_not_open(editor: Editor, ffm: FfmService) -> None:
    client = editor()
    assert client.items("file:///etc/hostname", (0, 0)) == []
    assert client.items("untitled:Untitled-1", (0, 0)) == []
    client.change("file:///etc/hostname", 2, (0, 0), "x")
    client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///etc/hostname"}})
    client.notify("textDocument/didFocus", {"textDocument": {"uri": "file:///etc/hostname"}})
    assert client.reasons() == {"not-open": 2}
    assert ffm.log == []
    client.shut_down()
    assert "Traceback" not in client.stderr


def test_notifications_that_make_no_sense_are_logged_once(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    for _ in range(3):
        client.notify("textDocument/didOpen", {"textDocument": {"text": "SECRET"}})
    client.notify("textDocument/didShowCompletion", {"item": 3})
    client.notify("textDocument/didPartiallyAcceptCompletion", None)
    client.notify("textDocument/didFocus", 7)
    client.notify("$/somethingNew", {})
    assert len(client.items(URI, AT)) == 1
    # The copy of a document with a change that cannot be read is wrong: silence from then on.
    client.notify(
        "textDocument/didChange",
        {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": 1, "range": 3}]},
    )
    assert client.items(URI, AT) == []
    client.open(URI, TEXT)
    assert len(client.items(URI, AT)) == 1
    client.shut_down()
    assert client.stderr.count("textDocument/didOpen") == 1
    assert "SECRET" not in client.stderr
    assert "Traceback" not in client.stderr


NO_TEXTS: list[Any] = [True, None, 5, 1.5, [], {}]
NO_INTEGERS: list[Any] = [True, None, 1.5, "1", [], {}, 2**70]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((field, value) for field in ("uri", "languageId", "text") for value in NO_TEXTS),
        *(("version", value) for value in NO_INTEGERS),
    ],
)
def test_a_document_with_a_value_of_the_wrong_type_is_not_open(
    protocol_client: LspClient, field: str, value: object
) -> None:
    client = protocol_client
    document = {"uri": URI, "languageId": "python", "version": 1, "text": TEXT, field: value}
    client.open(URI, TEXT)  # the old copy is as wrong as the new one
    client.notify("textDocument/didOpen", {"textDocument": document})
    expected = 1 if field == "uri" else 0  # which document it was cannot be known
    assert client.command("midfill.status")["documents"] == expected
    assert client.items(str(value), AT) == []
    client.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert client.command("midfill.status")["documents"] == 0


@pytest.fixture(scope="module")
def protocol_client() -> Iterator[LspClient]:
    """One server for many messages that make no sense."""
    with stdio_server() as client:
        client.initialize(client_params("minimal-utf8"))
        yield client
        client.shut_down()
        assert client.stderr.count("\n") == client.stderr.count("make no sense"), "no traces"
        assert client.stderr.count("textDocument/didOpen") <= 1


@pytest.mark.parametrize("value", [*NO_INTEGERS, -1, 2**31])
@pytest.mark.parametrize("axis", ["line", "character"])
def test_a_position_of_the_wrong_type(protocol_client: LspClient, axis: str, value: object) -> None:
    client = protocol_client
    client.open(URI, TEXT)
    position = {"line": 0, "character": 0, axis: value}
    for method in ("textDocument/inlineCompletion", "textDocument/completion"):
        with pytest.raises(LspError) as raised:
            client.call(method, {"textDocument": {"uri": URI}, "position": position})
        assert raised.value.code == -32602
    change = {"text": "x", "range": {"start": position, "end": position}}
    client.notify("textDocument/didChange", {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [change]})
    assert client.command("midfill.status")["documents"] == 0


def test_an_integer_may_be_written_with_a_point(editor: Editor, ffm: FfmService) -> None:
    client = opened(editor)
    position = {"line": 1.0, "character": 4.0}
    found = client.call("textDocument/inlineCompletion", {"textDocument": {"uri": URI}, "position": position})
    assert len(found["items"]) == 1
    client.shut_down()


def test_bytes_that_are_no_message(editor: Editor) -> None:
    client = opened(editor)
    for body, code in [(b"{", -32700), (b"\xff", -32700), (b"[" * 100_000, -32700), (b"[]", -32600), (b"7", -32600)]:
        client.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        answer = client.take(lambda message: message.get("id", 0) is None)
        assert answer["error"]["code"] == code
    for none in [each for each in NO_TEXTS if each != 5]:
        client.send({"jsonrpc": "2.0", "id": none, "method": "shutdown"})
        assert client.take(lambda message: message.get("id", 0) is None)["error"]["code"] == -32600
    client.send({"jsonrpc": "2.0", "id": "of nobody", "result": None}, {"jsonrpc": "2.0", "id": [1], "result": None})
    client.send_raw(b"X-Header: 1\r\n\r\n" + frame(client.message("$/setTrace", {"value": "verbose"})))
    assert client.items("file:///no", (0, 0)) == []
    client.shut_down()


def test_a_text_that_is_not_utf8(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)")
    client = editor()
    document = {"uri": URI, "languageId": "python", "version": 1, "text": "größe = '\ue000'\n"}
    message = frame(client.message("textDocument/didOpen", {"textDocument": document}))
    body = (
        message.partition(b"\r\n\r\n")[2]
        .replace("größe".encode(), b"gr\xf6\xdfe")
        .replace(b"\xee\x80\x80", b"\xe2\x82")
    )
    client.send_raw(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    (item,) = client.items(URI, (0, len("größe = '??'")))
    assert item["insertText"] == "call(1)"
    assert ffm.log[0].body["inputs"] == "gr\ufffd\ufffde = '\ufffd\ufffd'<FILL_ME>\n"
    client.shut_down()


def test_an_id_in_use_is_refused_and_free_afterwards(editor: Editor, ffm: FfmService) -> None:
    script(ffm, "call(1)", hold_after=1)
    client = opened(editor)
    first = client.complete_message(URI, AT, msg_id="same")
    client.send(first)
    until(ffm, generating=1)
    client.send(first)
    refused = client.take(lambda message: message.get("id") == "same")
    assert refused["error"]["code"] == -32600
    ffm.release()
    (item,) = client.take(lambda message: message.get("id") == "same")["result"]["items"]
    assert item["insertText"] == "call(1)"
    client.shut_down()


def test_asked_by_hand_there_are_several_to_choose_from(editor: Editor, ffm: FfmService, config: Path) -> None:
    config.write_text(settings(ffm.url).replace("max_candidates = 1", "max_candidates = 3"), encoding="utf-8")
    ffm.reset(*(Answer(deltas=(text,)) for text in ("one()", "two()", "one()")))
    client = editor("vscode-1.139")
    client.open(URI, TEXT)
    assert len(client.items(URI, AT, kind=2)) == 1
    items = client.items(URI, AT, kind=1)
    assert len(ffm.log) == 4
    assert 1 <= len({item["insertText"] for item in items}) == len(items) <= 2
    assert len({item["command"]["arguments"][0] for item in items}) == len(items)
    client.shut_down()
