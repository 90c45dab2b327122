"""The contract: HTTP statuses. The service repeats key and source text in its words; neither is shown."""

from __future__ import annotations

from backends.base import BackendError, ErrorKind
from tests.backends.contract import KEY, Bench, case
from tests.services.common import Answer


async def _refused(bench: Bench, status: int, kind: ErrorKind, **headers: str) -> BackendError:
    answer = Answer(status=status, detail=f"no luck with {KEY} in def add(a, b):", headers=headers)
    bench.service.reset(answer)
    error = await bench.fails(kind, "no luck", str(status))
    assert error.status == status
    assert "def add" not in error.message
    assert len(bench.service.log) == 1  # asking again is not a backend's own business
    return error


@case("400")
async def test_400(bench: Bench) -> None:
    await _refused(bench, 400, ErrorKind.BAD_REQUEST)


@case("401")
async def test_401(bench: Bench) -> None:
    error = await _refused(bench, 401, ErrorKind.AUTH)
    assert "MIDFILL_TEST_KEY" in error.message


@case("402")
async def test_402(bench: Bench) -> None:
    error = await _refused(bench, 402, ErrorKind.QUOTA)
    assert "balance" in error.message


@case("403")
async def test_403(bench: Bench) -> None:
    await _refused(bench, 403, ErrorKind.AUTH)


@case("404")
async def test_404(bench: Bench) -> None:
    error = await _refused(bench, 404, ErrorKind.MODEL_NOT_FOUND)
    assert f"127.0.0.1:{bench.service.port}" in error.message
    assert "url" in error.message


@case("422")
async def test_422(bench: Bench) -> None:
    await _refused(bench, 422, ErrorKind.BAD_REQUEST)


@case("429 without Retry-After")
async def test_429(bench: Bench) -> None:
    assert (await _refused(bench, 429, ErrorKind.RATE_LIMITED)).retry_after_s is None


@case("429 with Retry-After")
async def test_429_retry_after(bench: Bench) -> None:
    assert (await _refused(bench, 429, ErrorKind.RATE_LIMITED, **{"Retry-After": "7"})).retry_after_s == 7.0


@case("500")
async def test_500(bench: Bench) -> None:
    await _refused(bench, 500, ErrorKind.OVERLOADED)


@case("503")
async def test_503(bench: Bench) -> None:
    assert (await _refused(bench, 503, ErrorKind.OVERLOADED, **{"Retry-After": "30"})).retry_after_s == 30.0


@case("an error without a body")
async def test_no_body(bench: Bench) -> None:
    bench.service.reset(Answer(status=500, raw=b"", content_type=""))
    await bench.fails(ErrorKind.OVERLOADED, "500")
