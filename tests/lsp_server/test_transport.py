"""Frames are cut where Content-Length says, whatever the pieces they come in."""

from __future__ import annotations

import os
import threading

import pytest

from lsp_server.transport import DescriptorWriter, Frames, frame

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


@pytest.mark.parametrize(
    "bad", [b"Content-Length: x\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"noise\r\n\r\n", b"x" * 20_000]
)
def test_a_bad_header_is_skipped(bad: bytes) -> None:
    frames = Frames()
    assert frames.feed(bad) == []
    assert frames.feed(frame(b"{}")) == [b"{}"]


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
