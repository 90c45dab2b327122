"""What is asked of Qianfan besides completions: tokens, the list of models, embeddings, ranks.

Must not know how an answer comes to be: `Call` sends a request and gives the JSON of its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

import httpx

from backends._bce_auth import KeyPair, Token, signed
from backends._qianfan_wire import Result
from backends._service import Ask
from backends.base import BackendError, ErrorKind, Shape
from backends.keys import Key

BEARER_LIFETIME_S = 43_200  # what the official SDK asks for
PREFIX = "/rpc/2.0/ai_custom/v1/wenxinworkshop"
JSON = {"content-type": "application/json"}
MOST_WORKERS = 1000  # of the official SDK where none are said

Call = Callable[[Ask, Key | None, str], Awaitable[dict[str, Any]]]
Vector = tuple[float, ...]
Value = TypeVar("Value")


def ask_for(url: httpx.URL, body: Mapping[str, Any], *, headers: Mapping[str, str] = JSON, source: str = "") -> Ask:
    """A request for one whole answer."""
    return Ask(url, body, Result(), Shape.RAW, source=source, headers=headers)


async def create_bearer_token(call: Call, iam: httpx.URL, pair: KeyPair, lifetime_s: int = BEARER_LIFETIME_S) -> Token:
    """A V2 key made from IAM keys. Raises BackendError."""
    url = iam.copy_with(path=_joined(iam, "/v1/BCE-BEARER/token"), params={"expireInSeconds": str(lifetime_s)})
    record = await call(ask_for(url, {}, headers=JSON | signed(pair, "GET", url, JSON)), pair, "GET")
    return Token(_text(record, "token"), _between(record) or lifetime_s)


async def create_access_token(call: Call, base: httpx.URL, pair: KeyPair) -> Token:
    """A V1 token made from an application's API key and secret key. Raises BackendError."""
    params = {"grant_type": "client_credentials", "client_id": pair.identity, "client_secret": pair.value}
    record = await call(
        ask_for(base.copy_with(path=_joined(base, "/oauth/2.0/token"), params=params), {}), pair, "POST"
    )
    lifetime = record.get("expires_in")
    return Token(_text(record, "access_token"), float(lifetime) if isinstance(lifetime, int | float) else 3600.0)


async def find_route(call: Call, console: httpx.URL, pair: KeyPair, model: str) -> str:
    """The end of a V1 model's address, such as `chat/ernie_speed`, from the list of services. Raises BackendError."""
    url = console.copy_with(path=_joined(console, "/wenxinworkshop/service/list"))
    record = await call(ask_for(url, {}, headers=JSON | signed(pair, "POST", url, JSON)), pair, "POST")
    result = record.get("result")
    found = set()
    for group in ("common", "custom"):
        services = result.get(group) if isinstance(result, Mapping) else None
        for service in services if isinstance(services, list) else ():
            if isinstance(service, Mapping) and str(service.get("name", "")).casefold() == model.casefold():
                found.add("/".join(str(service.get("url", "")).rstrip("/").split("/")[-2:]))
    # Of a model that does both, plain continuation is wanted.
    for route in sorted(found, key=lambda route: not route.startswith("completions/")):
        if route.startswith(("completions/", "chat/")):
            return route
    raise BackendError(
        ErrorKind.MODEL_NOT_FOUND,
        f"The account's list of services has no model {model} that continues text or chats. Check model, or set"
        " endpoint to the end of its address.",
    )


async def in_batches(
    items: Sequence[str],
    size: int,
    ask: Callable[[Sequence[str]], Awaitable[Sequence[Value]]],
    workers: int | None,
) -> list[Value | BackendError]:
    """One value for each item, in order; where a request failed, its error in the place of each of its items.

    `workers`: requests at a time; as many as there are, at most 1000, if not said. Raises ValueError for less than one.
    """
    if workers is not None and workers < 1:
        raise ValueError("workers must be at least 1")
    batches = [items[start : start + size] for start in range(0, len(items), size)]
    turn = asyncio.Semaphore(workers or max(1, min(len(batches), MOST_WORKERS)))

    async def one(batch: Sequence[str]) -> Sequence[Value | BackendError]:
        async with turn:
            try:
                return await ask(batch)
            except BackendError as error:
                return [error] * len(batch)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(batch)) for batch in batches]
    return [value for task in tasks for value in task.result()]


def vectors_in(record: Mapping[str, Any], number: int) -> list[Vector]:
    """The embeddings of an answer in the order asked. Raises BackendError(PROTOCOL)."""
    return [_vector(item.get("embedding")) for item in _in_order(record.get("data"), number)]


def scores_in(record: Mapping[str, Any], number: int) -> list[float]:
    """The ranks of an answer in the order asked, which is not the order they come in. Raises BackendError(PROTOCOL)."""
    return [_number(item.get("relevance_score")) for item in _in_order(record.get("results"), number)]


def _in_order(items: Any, number: int) -> list[Mapping[str, Any]]:
    found = {item.get("index"): item for item in items if isinstance(item, Mapping)} if isinstance(items, list) else {}
    if found.keys() != set(range(number)):
        raise BackendError(ErrorKind.PROTOCOL, f"The service did not answer for each of {number} texts.")
    return [found[index] for index in range(number)]


def _vector(value: Any) -> Vector:
    if not isinstance(value, list):
        raise BackendError(ErrorKind.PROTOCOL, "The service's answer has no embedding.")
    return tuple(map(_number, value))


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise BackendError(ErrorKind.PROTOCOL, "The service's answer has something else in place of a number.")
    return float(value)


def _joined(base: httpx.URL, path: str) -> str:
    return base.path.rstrip("/") + path


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    # An HTTP library would quote the whole header in its own error.
    if not isinstance(value, str) or not value or not all("!" <= character <= "~" for character in value):
        raise BackendError(ErrorKind.PROTOCOL, f"The service's answer has no {name}, or none that can be sent.")
    return value


def _between(record: Mapping[str, Any]) -> float | None:
    """Seconds from a token's making to its end, by the service's clock."""
    try:
        made, ends = (datetime.fromisoformat(str(record.get(name))) for name in ("createTime", "expireTime"))
        return max(0.0, (ends - made).total_seconds())
    except (TypeError, ValueError):
        return None
