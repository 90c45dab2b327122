"""The contract: answers, concurrency, cancellation, keys."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from backends.base import BackendRequest, ErrorKind, Finish
from tests.backends.contract import KEY, KEY_ENV, Bench, cancelled, case, request_for
from tests.services.common import Answer


@case("describes itself, and prepares twice")
async def test_describes_itself(bench: Bench) -> None:
    backend = bench.backend
    assert (backend.name, backend.model) == ("work", bench.kind.model)
    assert backend.capabilities.shapes
    assert not backend.capabilities.remote
    assert backend.fingerprint == bench.build().fingerprint != bench.build(url=f"{bench.service.url}/other").fingerprint
    await backend.prepare()
    await backend.prepare()


@case("whole text, one end")
async def test_text_and_end(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("return ", "a", "", " + b")))
    deltas = await bench.deltas()
    assert "".join(delta.text for delta in deltas) == "return a + b"
    assert [delta.finish for delta in deltas if delta.finish] == [deltas[-1].finish] == [Finish.STOP]


@case("ended by max_tokens", "finish")
async def test_length(bench: Bench) -> None:
    bench.service.reset(Answer(finish_reason="length"))
    assert (await bench.deltas())[-1].finish is Finish.LENGTH


@case("counts tokens", "usage")
async def test_usage(bench: Bench) -> None:
    last = (await bench.deltas())[-1]
    assert last.usage
    assert last.usage.prompt_tokens == 21


@case("the first delta does not wait for the second", "stream")
async def test_deltas_as_they_come(bench: Bench) -> None:
    bench.service.reset(Answer(hold_after=1))
    async with aclosing(bench.backend.stream(request_for(bench.backend))) as deltas:
        assert (await anext(deltas)).text == "return "
        bench.service.release()
        assert "".join([delta.text async for delta in deltas]) == "a + b"


@case("an empty answer")
async def test_empty_answer(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=()))
    assert await bench.text() == ""


@case("unknown fields")
async def test_unknown_fields(bench: Bench) -> None:
    bench.service.reset(Answer(extra={"new_field": [1, {"a": None}]}))
    assert await bench.text() == "return a + b"


@case("five requests at once do not mix")
async def test_concurrency(bench: Bench) -> None:
    await bench.backend.prepare()
    bench.service.reset(*[Answer(deltas=(f"{n}:", "x", f":{n}"), delay_ms=1) for n in range(5)])
    assert sorted(await asyncio.gather(*[bench.text() for _ in range(5)])) == [f"{n}:x:{n}" for n in range(5)]


@case("a prompt is sent once, without the key in its body")
async def test_one_request(bench: Bench) -> None:
    await bench.text()
    bench.service.reset()
    await bench.text()
    (seen,) = bench.service.log
    assert "def add(a, b)" in seen.text
    assert KEY not in seen.text


async def _consume(bench: Bench, request: BackendRequest, texts: list[str], enough: asyncio.Event, number: int) -> None:
    async with aclosing(bench.backend.stream(request)) as deltas:
        async for delta in deltas:
            texts.append(delta.text)
            if len(texts) == number:
                enough.set()


@case("cancel before the first delta closes the socket")
async def test_cancel_early(bench: Bench) -> None:
    bench.service.reset(Answer(hold_after=0))
    task = asyncio.create_task(bench.text())
    await bench.service.until(generating=1)
    await cancelled(task)
    await bench.service.until(disconnected=1)


@case("cancel between deltas closes the socket", "stream")
async def test_cancel_late(bench: Bench) -> None:
    bench.service.reset(Answer(hold_after=2))
    texts: list[str] = []
    enough = asyncio.Event()
    task = asyncio.create_task(_consume(bench, request_for(bench.backend), texts, enough, 2))
    await enough.wait()
    await cancelled(task)
    await bench.service.until(disconnected=1)
    assert texts == ["return ", "a"]


@case("closing the generator closes the socket", "stream")
async def test_aclosing(bench: Bench) -> None:
    bench.service.reset(Answer(hold_after=1))
    async with aclosing(bench.backend.stream(request_for(bench.backend))) as deltas:
        await anext(deltas)
    await bench.service.until(disconnected=1)


@case("a wrong key", "key")
async def test_wrong_key(bench: Bench) -> None:
    bench.monkeypatch.setenv(KEY_ENV, "wrong" + KEY[5:])
    error = await bench.fails(ErrorKind.AUTH, KEY_ENV, backend=bench.build())
    assert KEY[6:] not in error.message
    bench.monkeypatch.setenv(KEY_ENV, KEY)


@case("a key that is not set: nothing is sent")
async def test_unset_key(bench: Bench) -> None:
    bench.monkeypatch.delenv(KEY_ENV)
    await bench.fails(ErrorKind.SETTINGS, KEY_ENV, backend=bench.build())
    assert bench.service.log == []
    bench.monkeypatch.setenv(KEY_ENV, KEY)
