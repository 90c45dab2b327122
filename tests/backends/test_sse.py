"""Event streams: whatever the chunks and line ends, the same records come out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends._sse import DONE, decode_object, json_lines, json_records, media_type, streams
from backends.base import BackendError, ErrorKind

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
