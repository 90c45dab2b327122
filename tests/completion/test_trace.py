"""The log of requests: counts, last ones, files that cannot be written."""

from __future__ import annotations

from completion.trace import TraceLog
from completion.types import Completion, NoSuggestion, Reason
from tests.completion.fake_clock import FakeClock

SHOWN = Completion("x", 0, 0, "1")


def test_counts_and_the_last_requests() -> None:
    log = TraceLog(None, clock=FakeClock())
    for number in range(60):
        log.finish(log.begin(str(number), "file:///a"), SHOWN if number % 2 else NoSuggestion(Reason.EMPTY))
    assert (log.counts["shown"], log.counts["empty"], log.counts["timeout"]) == (30, 30, 0)
    assert [trace.id for trace in log.recent] == [str(number) for number in range(10, 60)]
    last = log.last("file:///a")
    assert last is not None
    assert (last.id, last.reason) == ("59", "shown")
    assert log.last("file:///b") is None


def test_documents_are_told_apart_without_being_named() -> None:
    log = TraceLog(None, clock=FakeClock())
    a, b, again = (log.begin("1", uri) for uri in ("file:///a", "file:///b", "file:///a"))
    assert a.uri_hash == again.uri_hash != b.uri_hash
    assert "file" not in a.as_json()


async def test_times_count_from_receipt() -> None:
    clock = FakeClock()
    received = clock.now()
    await clock.advance(0.25)
    log = TraceLog(None, clock=clock)
    trace = log.begin("1", "file:///a", received)
    log.finish(trace, SHOWN)
    assert trace.answered == 250.0


def test_a_log_that_cannot_be_written_costs_nothing_more() -> None:
    def full(line: str) -> None:
        calls.append(line)
        raise OSError

    calls: list[str] = []
    log = TraceLog(full, clock=FakeClock())
    for _ in range(3):
        log.finish(log.begin("1", "file:///a"), SHOWN)
    assert len(calls) == 1
    assert log.counts["shown"] == 3


def test_many_documents_are_forgotten() -> None:
    log = TraceLog(None, clock=FakeClock())
    for number in range(500):
        log.finish(log.begin(str(number), f"file:///{number}"), SHOWN)
    assert log.last("file:///0") is None
    assert log.last("file:///499") is not None
