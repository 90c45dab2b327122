"""The contract: bodies that are broken, foreign, slow to come or odd but right."""

from __future__ import annotations

from backends.base import ErrorKind
from tests.backends.contract import KEY, Bench, case
from tests.services.common import Answer

PAGE = b"<!DOCTYPE html><html><head><title>502</title></head><body>Bad Gateway</body></html>"


@case("HTML from a gateway, 502")
async def test_html_502(bench: Bench) -> None:
    bench.service.reset(Answer(status=502, raw=PAGE, content_type="text/html"))
    error = await bench.fails(ErrorKind.PROTOCOL, "502", "gateway")
    assert "<" not in error.message


@case("HTML from a gateway, 200")
async def test_html_200(bench: Bench) -> None:
    bench.service.reset(Answer(raw=PAGE, content_type="text/html; charset=utf-8"))
    await bench.fails(ErrorKind.PROTOCOL, "web page", "url")


@case("wrong content type")
async def test_wrong_content_type(bench: Bench) -> None:
    bench.service.reset(Answer(content_type="text/plain"))
    await bench.fails(ErrorKind.PROTOCOL, "text/plain")


@case("no content type")
async def test_no_content_type(bench: Bench) -> None:
    bench.service.reset(Answer(content_type=""))
    await bench.fails(ErrorKind.PROTOCOL, "no content type")


@case("empty body")
async def test_empty_body(bench: Bench) -> None:
    bench.service.reset(Answer(raw=b"", content_type="application/json"))
    await bench.fails(ErrorKind.PROTOCOL)


@case("empty stream", "stream")
async def test_empty_stream(bench: Bench) -> None:
    bench.service.reset(Answer(raw=b""))
    await bench.fails(ErrorKind.TRUNCATED)


@case("JSON cut short")
async def test_cut_json(bench: Bench) -> None:
    bench.service.reset(Answer(raw=b'{"choices": [{"text": "retu', content_type="application/json"))
    await bench.fails(ErrorKind.PROTOCOL)


@case("a record cut short", "stream")
async def test_cut_record(bench: Bench) -> None:
    bench.service.reset(Answer(replace=((b"}", b""),)))
    await bench.fails(ErrorKind.PROTOCOL)


@case("JSON that is no object")
async def test_json_list(bench: Bench) -> None:
    bench.service.reset(Answer(raw=b'["return", 1]', content_type="application/json"))
    await bench.fails(ErrorKind.PROTOCOL)


@case("JSON without an answer in it")
async def test_json_of_another(bench: Bench) -> None:
    bench.service.reset(Answer(raw=b'{"hello": "world"}', content_type="application/json"))
    await bench.fails(ErrorKind.PROTOCOL)


@case("the stream ends before its final record", "stream")
async def test_no_final_record(bench: Bench) -> None:
    bench.service.reset(Answer(final="none"))
    await bench.fails(ErrorKind.TRUNCATED)


@case("an error in the stream", "stream", "stream error")
async def test_error_in_stream(bench: Bench) -> None:
    bench.service.reset(Answer(stream_error=f"worker died with {KEY}"))
    await bench.fails(ErrorKind.STREAM_ERROR, "worker died")


@case("one byte per packet")
async def test_one_byte(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("größe", " = ", "\U0001f600 中"), split=1))
    assert await bench.text() == "größe = \U0001f600 中"


@case("an event of 1 MiB")
async def test_big_event(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("x" * 2**20, "y")))
    assert await bench.text() == "x" * 2**20 + "y"


@case("raw control characters in JSON")
async def test_control_characters(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("a", "QQ", "b"), replace=((b"QQ", b"\x01\t\x1f"),)))
    assert await bench.text() == "a\x01\t\x1fb"


@case("invalid UTF-8 becomes U+FFFD")
async def test_invalid_utf8(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("a", "QQ", "b"), replace=((b"QQ", b"\xff\xe4"),)))
    text = await bench.text()
    assert (text[0], text[-1], set(text[1:-1])) == ("a", "b", {"\ufffd"})


@case("U+2028, U+2029, U+0085, form feed in the text")
async def test_line_separators(bench: Bench) -> None:
    bench.service.reset(Answer(deltas=("a\u2028", "\u2029\x85", "\x0cb")))
    assert await bench.text() == "a\u2028\u2029\x85\x0cb"


@case("backslashes, quotes, markup survive")
async def test_text_is_untouched(bench: Bench) -> None:
    text = 'TOTAL <T>("\\n") \\1 \\g<0> C:\\new <EO'
    bench.service.reset(Answer(deltas=(text[:9], text[9:])))
    assert await bench.text() == text


@case("gzip")
async def test_gzip(bench: Bench) -> None:
    bench.service.reset(Answer(gzip=True))
    assert await bench.text() == "return a + b"
    assert "gzip" in bench.service.log[-1].headers["accept-encoding"]
