"""Frames are cut where Content-Length says, whatever the pieces they come in."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from lsp_server.transport import DescriptorWriter, Frames, _read_in_thread, frame, read_descriptor

BODIES = [b'{"a":1}', '{"text":"é\U0001f600\\r\\n\\r\\n"}'.encode(), b"", b'{"b":"\r\n\r\n"}']


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_any_cut_gives_the_same_bodies(size: int) -> None:
    stream = b"".join(frame(body) for body in BODIES)
    frames = Frames()
    found = [body for at in range(0, len(stream), size) for body in frames.feed(stream[at : at + size])]
    assert found == BODIES


def test_header_names_in_any_case_and_other_headers() -> None:
    header = b"content-type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:  2 \r\n\r\n{}"
    assert Frames().feed(header) == [b"{}"]


def test_lines_of_a_header_may_end_with_a_newline_alone(caplog: pytest.LogCaptureFixture) -> None:
    frames = Frames()
    assert frames.feed(b"Content-Length: 2\n\n{}\n" + frame(b"[]") + b"A: b\nContent-Length: 1\nC: d\n\n7") == [
        b"{}",
        b"[]",
        b"7",
    ]
    assert caplog.text == "", "nothing to complain of"


NOISE = [
    b"Content-Length: x\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"noise\r\n\r\n",
    b"hello\n",
    b"\x1b[31mhello \xff",
    b"x" * 20_000,
    b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"Content-Length: 999999999999\r\n\r\n",
    b"Content-Length: 268435457\r\n\r\n",
    b"Content-Length: 5 pieces\r\nContent-Type: x\r\n",
    b"Content-Length: 12",  # the rest was lost
]


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("size", [1, 11, 100_000])
def test_noise_is_skipped_and_told_once(noise: bytes, size: int, caplog: pytest.LogCaptureFixture) -> None:
    frames = Frames()
    stream = frame(b"{}") + (noise + frame(b'{"a":1}')) * 2 + frame(b"[]")
    found = [body for at in range(0, len(stream), size) for body in frames.feed(stream[at : at + size])]
    assert found == [b"{}", b'{"a":1}', b'{"a":1}', b"[]"]
    assert len(caplog.records) == 1


def test_many_headers_without_end_cost_no_more_than_their_length() -> None:
    frames = Frames()
    for _ in range(20):
        assert frames.feed(b"Content-Length: 1\n" * 4000) == []
    assert frames.feed(b"\r\n" + b"7") == [b"7"]


READERS = [read_descriptor, _read_in_thread]


@pytest.mark.parametrize("reader", READERS)
async def test_messages_come_in_order_and_then_the_end(reader: Any) -> None:
    read, write = os.pipe()
    ended, bodies = asyncio.Event(), []
    reader(read, lambda body, moment: bodies.append(body), ended.set)
    stream = b"".join(frame(body) for body in BODIES)
    os.write(write, stream[:20])
    os.write(write, stream[20:])
    os.close(write)
    async with asyncio.timeout(60):
        await ended.wait()
    assert bodies == BODIES
    os.close(read)


async def test_a_file_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(frame(b"{}"))
    ended, bodies = asyncio.Event(), []
    with (tmp_path / "in").open("rb") as file:
        read_descriptor(file.fileno(), lambda body, moment: bodies.append(body), ended.set)
        async with asyncio.timeout(60):
            await ended.wait()
    assert bodies == [b"{}"]


@pytest.mark.parametrize("reader", READERS)
async def test_whatever_stops_the_reader_is_the_end(
    reader: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def feed(self: Frames, data: bytes) -> list[bytes]:
        raise ValueError

    monkeypatch.setattr(Frames, "feed", feed)
    read, write = os.pipe()
    ended = asyncio.Event()
    reader(read, lambda body, moment: None, ended.set)
    os.write(write, b"x")
    async with asyncio.timeout(60):
        await ended.wait()
    assert "bug while reading" in caplog.text
    os.close(read)
    os.close(write)


def test_writer_survives_a_closed_reader() -> None:
    read, write = os.pipe()
    try:
        writer = DescriptorWriter(write)
        writer.write(frame(b"{}"))
        assert os.read(read, 100) == b"Content-Length: 2\r\n\r\n{}"
        os.close(read)
        writer.write(b"x" * 100_000)
        writer.write(b"y")
    finally:
        os.close(write)


@pytest.mark.skipif(os.name == "nt", reason="pipes cannot be made non-blocking there")
def test_writer_waits_on_a_non_blocking_descriptor() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    data = os.urandom(1 << 20)  # larger than any pipe
    thread = threading.Thread(target=DescriptorWriter(write).write, args=(data,))
    thread.start()
    received = bytearray()
    while len(received) < len(data):
        received += os.read(read, 1 << 16)
    thread.join()
    os.close(read)
    os.close(write)
    assert received == data
