"""The choice for a document: kept from key to key, made anew in pauses when it is time, within its time."""

from __future__ import annotations

import logging

import pytest

from backends.base import Capabilities, Shape, SilentObserver
from completion.context import SOURCES, Gatherer
from completion.context.base import Look, Snippet, Source
from completion.context.choice import Choice
from completion.plan import Planner
from completion.privacy import Ignored
from completion.settings import CompletionSettings, ContextSettings, EngineSettings
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Text, Window
from lsp_server.lines import Lines
from lsp_server.settings_schema import CONTEXT
from tests.completion.context_tools import document, nothing_ignored
from tests.completion.fake_clock import FakeClock

TEXT = "".join(f"line_{number} = {number}\n" for number in range(400))
REMOTE = Capabilities(frozenset({Shape.RAW}))
LOCAL = Capabilities(frozenset({Shape.RAW}), remote=False)


class Fixed:
    """A source that counts how often it is asked, and takes its time."""

    def __init__(self, clock: FakeClock, seconds: float = 0.0, *paths: str) -> None:
        self.clock, self.seconds, self.asked = clock, seconds, 0
        self.found = [Snippet("fixed", path, f"{path} text\n", 0.5, f"file:///w/{path}", (0, 1)) for path in paths]
        self.forgotten: list[str] = []

    def snippets(self, look: Look) -> list[Snippet]:
        self.asked += 1
        self.clock._now += self.seconds
        return self.found

    def forget(self, uri: str) -> None:
        self.forgotten.append(uri)


class Desk:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *seconds: float) -> None:
        self.clock = FakeClock()
        self.sources = [Fixed(self.clock, each, f"{number}.py") for number, each in enumerate(seconds or (0.0,))]
        made = {str(number): lambda source=source: source for number, source in enumerate(self.sources)}
        monkeypatch.setattr("completion.context.SOURCES", made)
        self.gatherer = Gatherer(made, nothing_ignored, self.clock)
        self.text: Text = Lines(TEXT)
        self.offset, self.others = 100, (document("other.py", "x\n"),)

    def context(self, name: str = "a.py") -> CompletionContext:
        return CompletionContext(document(name, self.text), self.offset, others=self.others)

    def gather(self, name: str = "a.py", tokens: int = 500) -> Choice:
        return self.gatherer.gather(self.context(name), tokens, str, lambda: Window("", ""))

    def refresh(self, tokens: int = 500) -> None:
        self.gatherer.refresh(self.context(), tokens, str, lambda: Window("", ""))

    @property
    def asked(self) -> int:
        return self.sources[0].asked

    async def type(self, *, seconds: float = 0.0) -> None:
        """A key, and some time."""
        self.text = Lines(TEXT[: self.offset] + "x" + TEXT[self.offset :])
        self.offset += 1
        await self.clock.advance(seconds)


async def test_keys_do_with_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    first = desk.gather()
    for _ in range(5):
        await desk.type(seconds=10)
        assert desk.gather() is first
    assert desk.asked == 1


async def test_a_choice_is_too_old_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    first = desk.gather()
    await desk.type(seconds=61)
    second = desk.gather()
    assert desk.asked == 2
    assert second.files[0] is first.files[0], "it is the same, so it stays the same object"


async def test_pauses_have_it_made_anew_every_few_seconds_if_anything_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    desk.refresh()
    desk.refresh()
    await desk.type(seconds=4)
    desk.refresh()
    assert desk.asked == 1
    await desk.type(seconds=1.5)
    desk.refresh()
    assert desk.asked == 2
    await desk.clock.advance(100)
    desk.refresh()
    assert desk.asked == 2, "nothing has changed"


async def test_pauses_have_it_made_anew_when_the_cursor_is_far(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    desk.refresh()
    desk.offset = TEXT.index("line_40 ")
    desk.refresh()
    assert desk.asked == 2
    desk.offset = TEXT.index("line_60 ")
    desk.refresh()
    assert desk.asked == 2
    kept = desk.gather()
    desk.offset = TEXT.index("line_300 ")
    assert desk.gather() is kept, "a key waits for no choice"
    desk.refresh()
    assert desk.asked == 3


async def test_other_documents_that_changed_count_after_a_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    first = desk.gather()
    desk.others = (document("other.py", "y\n"),)
    assert desk.gather() is first
    await desk.clock.advance(5.5)
    desk.gather()
    assert desk.asked == 2


def test_each_document_and_budget_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    first = desk.gather("a.py")
    assert desk.gather("b.py") is not first
    assert desk.gather("a.py") is first
    assert desk.gather("a.py", tokens=400) is not first
    assert desk.asked == 3


def test_of_a_closed_document_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    first = desk.gather()
    desk.gatherer.forget("file:///w/else.py")
    assert desk.gather() is first
    desk.gatherer.forget("file:///w/0.py")
    assert desk.sources[0].forgotten == ["file:///w/else.py", "file:///w/0.py"]
    assert desk.gather() is not first


def test_what_is_late_is_left_out_and_comes_first_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 0.004, 0.007, 0.001)
    assert {piece.path for piece in desk.gather().pieces} == {"0.py", "1.py"}
    desk.refresh()
    assert {piece.path for piece in desk.gather().pieces} == {"0.py", "1.py", "2.py"}
    assert [source.asked for source in desk.sources] == [2, 2, 1]


def test_what_was_done_in_time_is_not_made_anew_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, 0.004, 0.004)
    desk.gather()
    desk.refresh()
    assert [source.asked for source in desk.sources] == [1, 1]


def test_a_source_that_fails_costs_its_own_pieces_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(monkeypatch, 0.0, 0.0)

    def fail(_: Look) -> list[Snippet]:
        raise ValueError("holds text of a file")

    monkeypatch.setattr(desk.sources[0], "snippets", fail)
    with caplog.at_level(logging.INFO):
        assert [piece.path for piece in desk.gather().pieces] == ["1.py"]
    assert "context source 0 failed: ValueError" in caplog.text
    assert "holds text" not in caplog.text


def test_the_setting_lists_all_sources() -> None:
    assert CONTEXT["sources"].choices == tuple(SOURCES) == ContextSettings().sources
    made: list[Source] = [source() for source in SOURCES.values()]
    for source in made:
        source.forget("file:///w/a.py")


# With a planner -----------------------------------------------------------------------------------------------------


def planner(*sources: str, clock: FakeClock) -> Planner:
    settings = EngineSettings(context=ContextSettings(sources=sources))
    return Planner(settings, "", SilentObserver(), Ignored(()), clock)


def long_file(at: int = 2000) -> CompletionContext:
    top = '"""What it is."""\n\nimport os\n\n\n'
    text = top + "".join(f"value_{number} = {number}\n" for number in range(4000))
    own = DocumentSnapshot("file:///w/a.py", "python", 1, PlainText(text), "a.py")
    return CompletionContext(own, text.index(f"value_{at} "))


def test_the_top_is_shown_once_and_only_where_the_window_does_not_reach() -> None:
    plans = planner("header", clock=FakeClock())
    plan = plans.plan(long_file(), CompletionSettings(), LOCAL)
    assert [(piece.source, piece.lines) for piece in plan.pieces] == [("header", (0, 3))]
    assert plan.extra[0].text == '"""What it is."""\n\nimport os\n'
    near = planner("header", clock=FakeClock()).plan(long_file(10), CompletionSettings(), LOCAL)
    assert (near.window.start, near.pieces) == (0, ())


@pytest.mark.parametrize("at", [*range(40, 360, 20), 2000, 3999])
def test_no_line_of_the_document_is_shown_twice(at: int) -> None:
    plan = planner("header", "similar", clock=FakeClock()).plan(long_file(at), CompletionSettings(), LOCAL)
    window = (plan.window.prefix + plan.window.suffix).split("\n")
    shown = [line for file in plan.extra for line in file.text.split("\n") if line.strip()]
    assert not set(shown) & set(window)
    assert len(set(shown)) == len(shown)


def test_a_pause_chooses_for_the_next_key() -> None:
    plans, context = planner("header", clock=FakeClock()), long_file()
    plans.refresh(context, CompletionSettings(), LOCAL)
    kept = plans.plan(context, CompletionSettings(), LOCAL)
    plans.refresh(context, CompletionSettings(), LOCAL)
    assert plans.plan(context, CompletionSettings(), LOCAL).extra[0] is kept.extra[0]


def test_pieces_are_without_secrets_where_they_leave_the_machine() -> None:
    key = "sk-" + "a1b2c3d4" * 5
    other = document("keys.py", f"client = Client('{key}')\n")
    for capabilities, seen in ((REMOTE, False), (LOCAL, True)):
        context = CompletionContext(document("a.py", "x = 1\n"), 0, others=(other,))
        plan = planner("open_files", clock=FakeClock()).plan(context, CompletionSettings(), capabilities)
        assert (key in plan.extra[0].text) is seen
