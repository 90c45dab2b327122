"""The contract: what goes wrong below HTTP, or around it."""

from __future__ import annotations

import base64
import socket
from contextlib import aclosing, suppress

from backends.base import BackendError, ErrorKind
from tests.backends.contract import KEY, Bench, case
from tests.services.common import CA, Answer
from tests.services.raw import http, raw_server


async def _times_out(bench: Bench, answer: Answer) -> None:
    hasty = bench.build(timeout_s=0.4)
    with suppress(BackendError):
        await bench.text(hasty)  # connected now, so that the deadline meets the answer alone
    bench.service.reset(answer)
    await bench.fails(ErrorKind.TIMEOUT, "timeout_s", backend=hasty)
    await bench.service.until(disconnected=1)


@case("keep-alives only: the deadline fires", "stream")
async def test_only_pings(bench: Bench) -> None:
    await _times_out(bench, Answer(hold_after=0, ping_ms=5))


@case("silence: the deadline fires")
async def test_silence(bench: Bench) -> None:
    await _times_out(bench, Answer(hold_head=True))


@case("silence after one delta: the deadline fires", "stream")
async def test_late_silence(bench: Bench) -> None:
    await _times_out(bench, Answer(hold_after=1))


@case("text that does not end: the deadline fires", "stream")
async def test_endless_text(bench: Bench) -> None:
    await _times_out(bench, Answer(deltas=("x",) * 1000, delay_ms=5))


@case("connection refused")
async def test_refused(bench: Bench) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = unused.getsockname()[1]
        url = f"http://127.0.0.1:{port}{bench.service.path}"
        await bench.fails(ErrorKind.UNREACHABLE, str(port), "running", backend=bench.build(url=url))


@case("reset after one delta")
async def test_reset(bench: Bench) -> None:
    bench.service.reset(Answer(reset_after=1))
    await bench.fails(ErrorKind.TRUNCATED, "before the answer was complete")


@case("a service that is gone and comes back")
async def test_comes_back(bench: Bench) -> None:
    with bench.kind.service(key=KEY) as first:
        moving = bench.build(url=first.url)
        assert await bench.text(moving) == "return a + b"
    error = await bench.fails(None, backend=moving)
    assert error.kind in (
        ErrorKind.UNREACHABLE,
        ErrorKind.PROTOCOL,
    )  # by whether the kept connection was closed by then
    with bench.kind.service(key=KEY, port=first.port):
        assert await bench.text(moving) == "return a + b"


@case("self-signed certificate without ca_file")
async def test_unknown_authority(bench: Bench) -> None:
    with bench.kind.service(key=KEY, tls=True) as service:
        await bench.fails(ErrorKind.UNREACHABLE, "TLS", "ca_file", backend=bench.build(url=service.url))
        assert service.log == []


@case("self-signed certificate with ca_file")
async def test_known_authority(bench: Bench) -> None:
    with bench.kind.service(key=KEY, tls=True) as service:
        async with aclosing(bench.build(url=service.url, ca_file=str(CA))) as backend:
            assert await bench.text(backend) == "return a + b"


@case("a proxy that answers 407, for https")
async def test_proxy_refuses_tunnel(bench: Bench) -> None:
    answer = http(b"", status="407 Proxy Authentication Required", headers="proxy-authenticate: Basic\r\n", length=True)
    async with raw_server(answer) as proxy:
        url = f"https://service.invalid{bench.service.path}"
        through = bench.build(url=url, proxy=f"http://user:{KEY}@127.0.0.1:{proxy.port}")
        await bench.fails(ErrorKind.UNREACHABLE, "proxy", "407", backend=through)
        assert KEY.encode() not in proxy.requests[0]  # the service's key; the proxy's own goes as Base64
        assert base64.b64encode(f"user:{KEY}".encode()) in proxy.requests[0]


@case("a proxy that answers 407, for http")
async def test_proxy_refuses(bench: Bench) -> None:
    answer = http(PAGE_407, status="407 Proxy Authentication Required", content_type="text/html", length=True)
    async with raw_server(answer) as proxy:
        url = f"http://service.invalid{bench.service.path}"
        through = bench.build(url=url, proxy=f"http://127.0.0.1:{proxy.port}")
        await bench.fails(ErrorKind.UNREACHABLE, "proxy", "407", backend=through)


PAGE_407 = b"<html><body>Proxy login</body></html>"


@case("redirect to another host: the key does not follow")
async def test_redirect(bench: Bench) -> None:
    async with raw_server(http(b"{}", content_type="application/json")) as other:
        where = f"http://localhost:{other.port}/?key={KEY}"
        for status in (301, 302, 307, 308):
            bench.service.reset(Answer(status=status, headers={"Location": where}))
            await bench.fails(ErrorKind.PROTOCOL, str(status), "moved")
        assert other.requests == []
