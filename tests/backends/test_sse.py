"""Event streams: whatever the chunks and line ends, the same records come out."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends._qianfan_wire import records_of as qianfan_records
from backends._sse import (
    DONE,
    MOST_BYTES,
    PIECE_BYTES,
    Lines,
    decode_object,
    json_lines,
    json_records,
    media_type,
    read_text,
    streams,
)
from backends.base import BackendError, ErrorKind
from backends.llama_server import LlamaServerBackend

NOISE = (": ping - 2023-09-26\n\n", "event: ping\ndata: 2023-09-26 04:25:08\n\n", "data:\n\n", "data: [DONE]\n\n", "\n")


async def records_of(body: bytes, sizes: list[int]) -> list[dict[str, Any]]:
    """Parse a body that comes in chunks of these sizes, the last size repeated."""

    async def chunks() -> AsyncIterator[bytes]:
        start, number = 0, 0
        while start < len(body):
            size = sizes[min(number, len(sizes) - 1)]
            yield body[start : start + size]
            start, number = start + size, number + 1

    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks())
    async with aclosing(json_records(response)) as records:
        return [record async for record in records if record is not DONE]


@given(
    texts=st.lists(st.text(), max_size=4),
    ascii_only=st.booleans(),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    noise=st.lists(st.sampled_from(NOISE), min_size=5, max_size=5),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
)
async def test_any_text_in_any_chunks_with_any_line_end(
    texts: list[str], ascii_only: bool, line_end: str, noise: list[str], sizes: list[int]
) -> None:
    records = [{"generated_text": text} for text in texts]
    written = [noise[0]]
    for record, after in zip(records, noise[1:], strict=False):
        written += [f"data: {json.dumps(record, ensure_ascii=ascii_only)}\n\n", after]
    body = "".join(written).replace("\n", line_end).encode()
    assert await records_of(body, sizes) == records


async def test_an_event_without_its_blank_line_does_not_count() -> None:
    body = b'data: {"a": 1}\n\ndata: {"a": 2}\n'
    assert await records_of(body, [1000]) == [{"a": 1}]


async def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert await records_of(b'data: {"a": "\xff\xe7\x8e"}\n\n', [1]) == [{"a": "\ufffd\ufffd"}]


async def test_a_record_that_is_no_json_ends_the_stream() -> None:
    with pytest.raises(BackendError) as caught:
        await records_of(b"data: nothing\n\n", [1000])
    assert caught.value.kind is ErrorKind.PROTOCOL


@pytest.mark.parametrize("text", ["", "{", "1", "[]", '"a"', "null", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BackendError) as caught:
        decode_object(text)
    assert caught.value.kind is ErrorKind.PROTOCOL


@pytest.mark.parametrize(
    ("header", "media", "stream"),
    [
        ("text/event-stream", "text/event-stream", True),
        ("Text/Event-Stream;charset=utf-8", "text/event-stream", True),
        ("application/x-ndjson", "application/x-ndjson", True),
        ("application/json", "application/json", False),
        ("", "", False),
    ],
)
def test_content_types(header: str, media: str, stream: bool) -> None:
    response = httpx.Response(200, headers={"content-type": header})
    assert media_type(response) == media
    assert streams(response) is stream


async def test_the_end_mark_is_told_apart_from_an_empty_record() -> None:
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=b"data: {}\n\ndata: [DONE]\n\n"
    )
    async with aclosing(json_records(response)) as records:
        first, second = [record async for record in records]
    assert (first, first is DONE, second is DONE) == ({}, False, True)


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_json_lines_end_at_newlines_only(size: int) -> None:
    body = '{"response": "a\u2028b\u0085"}\n\n{"response": "\u7389"}\r\n{"done": true}'.encode()

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    response = httpx.Response(200, headers={"content-type": "application/x-ndjson"}, content=chunks())
    async with aclosing(json_lines(response)) as records:
        found = [record async for record in records]
    assert found == [{"response": "a\u2028b\u0085"}, {"response": "\u7389"}, {"done": True}]


# How much there may be ------------------------------------------------------------------------------------------------


def packed(body: bytes, media: str) -> httpx.Response:
    """All of it in one packet, which is a thousandth of its size."""

    async def chunks() -> AsyncIterator[bytes]:
        yield gzip.compress(body, 9)

    return httpx.Response(200, headers={"content-type": media, "content-encoding": "gzip"}, content=chunks())


READERS: Mapping[str, tuple[str, Callable[[httpx.Response], AsyncGenerator[dict[str, Any], None]]]] = {
    "events": ("text/event-stream", json_records),
    "lines": ("application/x-ndjson", json_lines),
    "errors": ("text/event-stream", lambda response: LlamaServerBackend.records(None, response)),  # type: ignore[arg-type]
    "bare lines": ("text/event-stream", qianfan_records),
}


@pytest.mark.parametrize("begin", [b"\n", b"data: "])
@pytest.mark.parametrize("reader", READERS)
async def test_an_answer_without_end_is_refused(reader: str, begin: bytes) -> None:
    media, records_in = READERS[reader]
    async with aclosing(records_in(packed(begin + b" " * (MOST_BYTES + 1), media))) as records:
        with pytest.raises(BackendError, match="larger than 32 MiB") as caught:
            await anext(records)
    assert caught.value.kind is ErrorKind.PROTOCOL


async def test_so_is_a_text_but_not_its_beginning() -> None:
    body = b" " * (MOST_BYTES + 1)
    with pytest.raises(BackendError, match="larger than 32 MiB"):
        await read_text(packed(body, "application/json"))
    assert await read_text(packed(body[:1000], "application/json"), 10) == " " * 10


@pytest.mark.parametrize("reader", READERS)
async def test_others_get_their_turn_however_much_one_packet_holds(reader: str) -> None:
    media, records_in = READERS[reader]
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    task = asyncio.create_task(other())
    size = 64 * PIECE_BYTES
    async with aclosing(records_in(packed(b"\n" * (size - 14) + b'data: {"a":1}\n\n', media))) as records:
        if reader == "lines":
            with pytest.raises(BackendError):
                await anext(records)
        else:
            assert await anext(records) == {"a": 1}
    task.cancel()
    assert turns >= 60


@given(lines=st.lists(st.binary(max_size=5), max_size=6), size=st.integers(1, 7))
def test_lines_are_the_same_however_they_come(lines: list[bytes], size: int) -> None:
    body = b"\n".join(lines)
    cut, found = Lines(), []
    for start in range(0, len(body), size):
        found += cut.feed(body[start : start + size])
    assert [*found, cut.rest] == body.split(b"\n")


async def test_the_content_type_of_a_stream_may_be_spelt_in_any_case() -> None:
    response = httpx.Response(200, headers={"content-type": "Text/Event-Stream; charset=big5"}, content=b"data: {}\n\n")
    async with aclosing(json_records(response)) as records:
        assert [record async for record in records] == [{}]
