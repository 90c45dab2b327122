"""One answer to each request whatever the handler does; handlers run while their message is handled."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.client import Client
from lsp_server.protocol import InvalidParamsError, Protocol
from lsp_server.transport import Frames


class Sent:
    """A writer that keeps what is written."""

    def __init__(self) -> None:
        self._frames = Frames()
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages += map(json.loads, self._frames.feed(data))


@pytest.fixture
def sent() -> Sent:
    return Sent()


@pytest.fixture
def protocol(sent: Sent) -> Protocol:
    made = Protocol(SimpleNamespace(name="midfill", version="0"), None)
    made.set_writer(sent)  # type: ignore[arg-type]
    made.initialized = True
    return made


def receive(protocol: Protocol, **message: Any) -> None:
    protocol.receive(json.dumps({"jsonrpc": "2.0", **message}).encode())


async def turns(number: int = 5) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("awaitable", [False, True])
@pytest.mark.parametrize(("error", "code"), [(KeyError("SECRET"), -32603), (InvalidParamsError("odd"), -32602)])
async def test_bug_in_a_handler(protocol: Protocol, sent: Sent, awaitable: bool, error: Exception, code: int) -> None:
    async def later(params: Any) -> None:
        raise error

    def now(params: Any) -> None:
        raise error

    protocol.requests["test"] = later if awaitable else now
    receive(protocol, id=1, method="test")
    await turns()
    (answer,) = sent.messages
    assert (answer["id"], answer["error"]["code"]) == (1, code)
    assert set(answer["error"]) == {"code", "message"}
    assert "SECRET" not in str(answer)


async def test_bug_in_a_notification_is_survived(protocol: Protocol, sent: Sent) -> None:
    async def later(params: Any) -> None:
        raise KeyError

    def now(params: Any) -> None:
        raise KeyError

    protocol.notifications.update(later=later, now=now)
    receive(protocol, method="later")
    receive(protocol, method="now")
    await turns()
    assert sent.messages == []


async def test_handlers_run_in_the_order_of_messages_before_anything_awaited(protocol: Protocol) -> None:
    order: list[str] = []

    def request(params: Any) -> Any:
        order.append("request")

        async def work() -> None:
            order.append("work")

        return work()

    protocol.requests["request"] = request
    protocol.notifications["change"] = lambda params: order.append("change")
    receive(protocol, id=1, method="request")
    receive(protocol, method="change")
    await turns()
    assert order == ["request", "change", "work"]


async def test_cancelled_request_has_one_answer_though_its_handler_goes_on(protocol: Protocol, sent: Sent) -> None:
    stopped = asyncio.Event()

    async def stubborn(params: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await turns()
            stopped.set()
        return "late"

    protocol.requests["stubborn"] = stubborn
    receive(protocol, id="a", method="stubborn")
    await turns()
    receive(protocol, method="$/cancelRequest", params={"id": "a"})
    assert [message["error"]["code"] for message in sent.messages] == [-32800], "at once"
    await stopped.wait()
    await turns()
    assert len(sent.messages) == 1


async def test_requests_of_ours(protocol: Protocol, sent: Sent) -> None:
    item = types.ConfigurationItem(section="midfill")
    params = types.ConfigurationParams(items=[item])
    asked = [protocol.send_request_async("workspace/configuration", params) for _ in range(3)]
    ids = [message["id"] for message in sent.messages]
    receive(protocol, id=ids[0], result=[{"a": 1}])
    receive(protocol, id=ids[1], error={"code": -1, "message": "no"})
    receive(protocol, id=ids[2], result=7)
    receive(protocol, id=ids[0], result="twice")
    assert list(await asked[0]) == [{"a": 1}]
    for each in asked[1:]:
        with pytest.raises((JsonRpcException, InvalidParamsError)):
            await each
    protocol.shut_down = True
    assert protocol.send_request("workspace/configuration", params).cancelled()
    assert len(sent.messages) == 3


async def test_response_does_not_end_a_request_of_the_client(protocol: Protocol, sent: Sent) -> None:
    async def wait(params: Any) -> None:
        await asyncio.Event().wait()

    protocol.requests["wait"] = wait
    receive(protocol, id=1, method="wait")
    await turns()
    receive(protocol, id=1, result=None)
    await turns()
    assert sent.messages == []
    protocol.cancel_all()
    assert len(sent.messages) == 1


def kinds(sent: Sent) -> list[str]:
    return [message["params"]["value"]["kind"] for message in sent.messages if message["method"] == "$/progress"]


async def test_progress_waits_for_the_client_to_make_the_token(protocol: Protocol, sent: Sent) -> None:
    client = Client(protocol)
    client.capabilities = type(client.capabilities)(work_done_progress=True)
    client.progress("load", "Loading", 0.0)
    client.progress("load", "Loading", 0.5)
    assert kinds(sent) == []
    (create,) = [message for message in sent.messages if "id" in message]
    receive(protocol, id=create["id"], result=None)
    client.progress("load", "Loading", 0.501)  # the same percentage
    client.progress("load", "Loading", 0.75)
    client.progress("load", "Loading", None, done=True)
    assert kinds(sent) == ["begin", "report", "end"]
    values = [message["params"]["value"] for message in sent.messages if message["method"] == "$/progress"]
    assert [value.get("percentage") for value in values] == [50, 75, None]


@pytest.mark.parametrize("answer", [{"result": None}, {"error": {"code": -32601, "message": "no"}}])
async def test_progress_that_is_done_or_refused_first_never_begins(
    protocol: Protocol, sent: Sent, answer: dict[str, Any]
) -> None:
    client = Client(protocol)
    client.capabilities = type(client.capabilities)(work_done_progress=True)
    client.progress("load", "Loading", 0.0)
    if "result" in answer:
        client.progress("load", "Loading", 1.0, done=True)
    (create,) = [message for message in sent.messages if "id" in message]
    receive(protocol, id=create["id"], **answer)
    client.progress("load", "Loading", 1.0, done=True)
    assert kinds(sent) == []


async def test_notices_are_told_once_until_forgotten(protocol: Protocol, sent: Sent) -> None:
    client = Client(protocol)
    for _ in range(2):
        client.notice("a", "one")
        client.notice("b", "two", warning=False)
    assert [message["method"] for message in sent.messages] == ["window/showMessage", "window/logMessage"]
    client.forget_notices()
    client.notice("a", "one")
    assert len(sent.messages) == 3
