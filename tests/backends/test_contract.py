"""What every backend that speaks HTTP must do, against a real service of its kind.

A new kind is added with its service to `SERVICES`; a kind in the registry that is in neither table fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from backends import registry
from backends.base import Backend, BackendError, BackendRequest, ErrorKind, Finish, InfillPrompt, Shape, SilentObserver
from backends.settings import BackendSettings
from tests.services.ffm import Answer, FfmService

SERVICES: dict[str, tuple[type[FfmService], str]] = {"ffm": (FfmService, "qwen2.5-coder-7b-32k")}
WITHOUT_HTTP = {"llama-cpp"}
REQUEST = BackendRequest(InfillPrompt("def add(a, b):\n    ", "\n\nadd(1, 2)\n"), max_tokens=32, stop=("\n\n",))


@pytest.fixture(scope="module", params=sorted(registry.KINDS.keys() - WITHOUT_HTTP))
def running(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, FfmService]]:
    service_class, model = SERVICES[request.param]
    with service_class(key="test-key") as service:
        yield request.param, model, service


@pytest.fixture
def service(running: tuple[str, str, FfmService]) -> FfmService:
    running[2].reset()
    return running[2]


@pytest.fixture
async def backend(running: tuple[str, str, FfmService], monkeypatch: pytest.MonkeyPatch) -> Any:
    kind, model, service = running
    monkeypatch.setenv("MIDFILL_TEST_KEY", "test-key")
    settings = BackendSettings(kind=kind, url=service.url, model=model, key_env="MIDFILL_TEST_KEY")
    built = registry.create("work", settings, SilentObserver())
    yield built
    await built.aclose()


async def failure(backend: Backend, collect: Any) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await collect(backend, REQUEST)
    return caught.value


def test_every_kind_is_in_one_table() -> None:
    assert set(registry.KINDS) == SERVICES.keys() | WITHOUT_HTTP


async def test_describes_itself(backend: Backend, running: tuple[str, str, FfmService]) -> None:
    assert (backend.name, backend.model) == ("work", running[1])
    assert Shape.INFILL in backend.capabilities.shapes
    assert not backend.capabilities.remote
    assert backend.fingerprint
    await backend.prepare()
    await backend.prepare()


async def test_streams_deltas_and_ends_with_one_that_says_why(
    service: FfmService, backend: Backend, collect: Any
) -> None:
    service.reset(Answer(deltas=("return ", "a", "", " + b"), finish_reason="length"))
    deltas = await collect(backend, REQUEST)
    assert "".join(delta.text for delta in deltas) == "return a + b"
    assert len(deltas) >= 3
    assert [delta.finish for delta in deltas if delta.finish] == [Finish.LENGTH]
    assert deltas[-1].finish
    assert deltas[-1].usage.prompt_tokens == 21


async def test_the_first_delta_does_not_wait_for_the_second(service: FfmService, backend: Backend) -> None:
    service.reset(Answer(hold_after=1))
    async with aclosing(backend.stream(REQUEST)) as deltas:
        assert (await anext(deltas)).text == "return "
        service.release()
        assert "".join([delta.text async for delta in deltas]) == "a + b"


async def test_concurrent_requests_do_not_mix(service: FfmService, backend: Backend, collect: Any) -> None:
    service.reset(*[Answer(deltas=(f"{n}:", "x", f":{n}"), delay_ms=1) for n in range(5)])
    answers = await asyncio.gather(*[collect(backend, REQUEST) for _ in range(5)])
    texts = sorted("".join(delta.text for delta in deltas) for deltas in answers)
    assert texts == [f"{n}:x:{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.BAD_REQUEST),
        (401, ErrorKind.AUTH),
        (402, ErrorKind.QUOTA),
        (404, ErrorKind.MODEL_NOT_FOUND),
        (429, ErrorKind.RATE_LIMITED),
        (500, ErrorKind.OVERLOADED),
        (503, ErrorKind.OVERLOADED),
    ],
)
async def test_status(service: FfmService, backend: Backend, collect: Any, status: int, kind: ErrorKind) -> None:
    service.reset(Answer(status=status, detail="no luck", headers={"Retry-After": "3"}))
    error = await failure(backend, collect)
    assert (error.kind, error.status, error.retry_after_s) == (kind, status, 3.0)
    assert "no luck" in error.message
    assert len(service.log) == 1  # nothing is tried again behind the engine's back


async def test_a_wrong_key(service: FfmService, backend: Backend, collect: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("MIDFILL_TEST_KEY", "wrong")
    error = await failure(backend, collect)
    assert error.kind is ErrorKind.AUTH
    assert "MIDFILL_TEST_KEY" in error.message
    assert "wrong" not in error.message


async def test_an_unset_key_is_found_before_anything_is_sent(
    service: FfmService, backend: Backend, collect: Any, monkeypatch: Any
) -> None:
    monkeypatch.delenv("MIDFILL_TEST_KEY")
    assert (await failure(backend, collect)).kind is ErrorKind.SETTINGS
    assert service.log == []


async def test_an_answer_that_breaks_off(service: FfmService, backend: Backend, collect: Any) -> None:
    service.reset(Answer(final="none"))
    assert (await failure(backend, collect)).kind is ErrorKind.TRUNCATED


async def test_an_error_in_the_stream(service: FfmService, backend: Backend, collect: Any) -> None:
    service.reset(Answer(stream_error={"status_code": 500, "error": "worker died"}))
    error = await failure(backend, collect)
    assert error.kind is ErrorKind.STREAM_ERROR
    assert "worker died" in error.message


@pytest.mark.parametrize("hold_after", [0, 2])
async def test_cancelling_closes_the_connection(service: FfmService, backend: Backend, hold_after: int) -> None:
    service.reset(Answer(hold_after=hold_after))
    texts: list[str] = []
    enough = asyncio.Event()

    async def consume() -> None:
        async with aclosing(backend.stream(REQUEST)) as deltas:
            async for delta in deltas:
                texts.append(delta.text)
                if len(texts) == hold_after:
                    enough.set()

    task = asyncio.create_task(consume())
    await service.until(generating=1)
    if hold_after:
        await enough.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await service.until(disconnected=1)
    assert len(texts) == hold_after


async def test_closing_the_generator_closes_the_connection(service: FfmService, backend: Backend) -> None:
    service.reset(Answer(hold_after=1))
    async with aclosing(backend.stream(REQUEST)) as deltas:
        await anext(deltas)
    await service.until(disconnected=1)


async def test_a_cancelled_request_does_not_harm_the_next(service: FfmService, backend: Backend, collect: Any) -> None:
    service.reset(Answer(hold_after=0), Answer())
    task = asyncio.create_task(collect(backend, REQUEST))
    await service.until(generating=1)
    task.cancel()
    deltas = await collect(backend, REQUEST)
    assert "".join(delta.text for delta in deltas) == "return a + b"


async def test_a_service_that_comes_back_is_used_again(running: Any, backend: Backend, collect: Any) -> None:
    kind, model, _ = running
    service_class, _ = SERVICES[kind]
    with service_class(key="test-key") as first:
        port = first.port
        settings = BackendSettings(kind=kind, url=first.url, model=model, key_env="MIDFILL_TEST_KEY")
        moving = registry.create("work", settings, SilentObserver())
        assert await collect(moving, REQUEST)
    error = await failure(moving, collect)
    assert error.kind in (ErrorKind.UNREACHABLE, ErrorKind.PROTOCOL)
    with service_class(key="test-key", port=port):
        assert await collect(moving, REQUEST)
    await moving.aclose()
