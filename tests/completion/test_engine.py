"""The engine with a scripted backend: outcomes, reasons, second tries, what prompts hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.base import (
    BackendError,
    BackendRequest,
    Capabilities,
    ChatPrompt,
    Delta,
    ErrorKind,
    Finish,
    InfillPrompt,
    Piece,
    RawPrompt,
    Shape,
    Usage,
)
from backends.scripted import CUT_OFF, Script
from completion.engine import Engine
from completion.settings import CompletionSettings, ContextSettings, EngineSettings, PrivacySettings
from completion.types import (
    Completion,
    NoSuggestion,
    Reason,
    Selected,
    Trigger,
)
from tests.completion.desk import LOCAL, RAW, Desk, Notices, context, other, reason


async def test_a_suggestion() -> None:
    desk = Desk(["a + ", "b", Delta("\n", Finish.STOP, Usage(20, 15, 3))])
    got: list[str] = []
    outcome = await desk.ask("def f(a, b):\n    return ⟦|⟧\n", on_text=got.append)
    assert outcome == Completion("a + b", 24, 24, "1")
    assert "".join(got) == "a + b\n"
    assert desk.trace is not None
    assert (desk.trace.prompt_tokens, desk.trace.reused_tokens, desk.trace.generated_tokens) == (20, 15, 3)
    (request,) = desk.backend.requests
    assert request.prompt == InfillPrompt("def f(a, b):\n    return ", "\n", "a.py", "repo", language="python")
    assert (request.max_tokens, request.temperature) == (128, 0.0)


@pytest.mark.parametrize(
    ("finish", "answer", "expected"),
    [
        (Finish.LENGTH, "a\n    b = unfinis", "a"),
        (Finish.LENGTH, "only_one_li", "only_one_li"),
        (Finish.STOP, "a\n    b", "a\n    b"),
    ],
)
async def test_a_line_cut_by_the_length_limit_is_dropped(finish: Finish, answer: str, expected: str) -> None:
    outcome = await Desk([answer, Delta("", finish)]).ask("def f():\n    ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (EngineSettings(completion=CompletionSettings(enabled=False)), Reason.DISABLED),
        (EngineSettings(languages={"python": CompletionSettings(enabled=False)}), Reason.DISABLED),
        (EngineSettings(languages={"go": CompletionSettings(enabled=False)}), None),
        (EngineSettings(privacy=PrivacySettings(ignore=("a.*",))), Reason.IGNORED_FILE),
        (EngineSettings(privacy=PrivacySettings(ignore=("b.*",))), None),
    ],
)
async def test_refusals(settings: EngineSettings, expected: Reason | None) -> None:
    desk = Desk(settings=settings)
    assert reason(await desk.ask("x = ⟦|⟧", trigger=Trigger.INVOKED)) is expected
    assert len(desk.backend.requests) == (expected is None)


async def test_without_a_backend_the_detail_names_the_ways_on() -> None:
    outcome = await Desk(backend=False).ask("⟦|⟧")
    assert isinstance(outcome, NoSuggestion)
    assert outcome.reason is Reason.NO_BACKEND
    assert "local" in outcome.detail
    assert "backend" in outcome.detail


@pytest.mark.parametrize(("remote", "expected"), [(True, Reason.NO_BACKEND), (False, None)])
async def test_remote_backends_may_be_forbidden(remote: bool, expected: Reason | None) -> None:
    settings = EngineSettings(privacy=PrivacySettings(allow_remote=False))
    desk = Desk(settings=settings, capabilities=replace(LOCAL, remote=remote))
    assert reason(await desk.ask("⟦|⟧", trigger=Trigger.INVOKED)) is expected


@pytest.mark.parametrize(
    ("marked", "trigger", "expected"),
    [
        ("fo⟦|⟧o", Trigger.AUTOMATIC, Reason.MID_WORD),
        ("a_⟦|⟧1", Trigger.AUTOMATIC, Reason.MID_WORD),
        ("fo⟦|⟧o", Trigger.INVOKED, None),
        ("foo⟦|⟧", Trigger.AUTOMATIC, None),
        ("⟦|⟧foo", Trigger.AUTOMATIC, None),
        ("a.⟦|⟧foo", Trigger.AUTOMATIC, None),
        ("foo⟦|⟧(", Trigger.AUTOMATIC, None),
    ],
)
async def test_in_a_word(marked: str, trigger: Trigger, expected: Reason | None) -> None:
    assert reason(await Desk(["done."]).ask(marked, trigger=trigger)) is expected


async def test_the_chosen_entry_of_the_menu_is_taken_as_accepted() -> None:
    desk = Desk(["(path)"])
    outcome = await desk.ask("os.path.jo⟦|⟧\n", selected=Selected("join", 8, 10))
    assert outcome == Completion("join(path)", 8, 10, "1")
    prompt = desk.backend.requests[0].prompt
    assert isinstance(prompt, InfillPrompt)
    assert (prompt.prefix, prompt.suffix) == ("os.path.join", "\n")


@pytest.mark.parametrize(
    ("marked", "start", "end", "expected"),
    [
        ("os.⟦|⟧pa\n", 4, 5, Reason.STALE),  # behind the cursor
        ("os.pa⟦|⟧\n", 3, 4, Reason.STALE),  # before it
        ("a\nos.pa⟦|⟧\n", 0, 1, Reason.STALE),  # on another line
        ("a\nos.pa⟦|⟧\n", 0, 7, Reason.STALE),  # over two lines
        ("a\ros.pa⟦|⟧\n", 0, 7, Reason.STALE),
        ("os.pa⟦|⟧\n", 5, 3, Reason.STALE),  # reversed
        ("os.pa⟦|⟧\n", 3, 99, Reason.STALE),  # past the end
        ("os.pa⟦|⟧\n", -1, 5, Reason.STALE),
        ("os.pa⟦|⟧\n", 3, 5, None),
        ("os.p⟦|⟧a\n", 3, 5, None),  # the word is replaced as a whole
        ("os.⟦|⟧\n", 3, 3, None),
    ],
)
async def test_an_entry_that_is_not_at_the_cursor_is_refused(
    marked: str, start: int, end: int, expected: Reason | None
) -> None:
    desk = Desk(["(x)"])
    outcome = await desk.ask(marked, selected=Selected("path", start, end))
    assert reason(outcome) is expected
    assert len(desk.backend.requests) == (expected is None)
    if isinstance(outcome, Completion):
        assert (outcome.text, outcome.start, outcome.end) == ("path(x)", start, end)


async def test_crlf_goes_out_as_lf_and_comes_back_on_every_line() -> None:
    desk = Desk(["a = 1\n", "\nb = 2"])
    outcome = await desk.ask("x\r\n⟦|⟧\r\ny\r\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "a = 1\r\n\r\nb = 2"
    prompt = desk.backend.requests[0].prompt
    assert isinstance(prompt, InfillPrompt)
    assert (prompt.prefix, prompt.suffix) == ("x\n", "\ny\n")


@pytest.mark.parametrize("kind", list(ErrorKind))
async def test_errors_of_the_backend_become_reasons(kind: ErrorKind) -> None:
    desk = Desk([BackendError(kind, "what happened")])
    outcome = await desk.ask("⟦|⟧")
    reasons = {ErrorKind.TIMEOUT: Reason.TIMEOUT, ErrorKind.BREAKER_OPEN: Reason.BREAKER_OPEN}
    expected = reasons.get(kind, Reason.BACKEND_ERROR)
    assert outcome == NoSuggestion(expected, "what happened")
    told = (f"backend:scripted:{kind.value}", "what happened", True) in desk.notices.seen
    assert told is (kind is not ErrorKind.BREAKER_OPEN), "its cause was told before"
    assert reason(await desk.ask("⟦|⟧")) is expected  # a failure is never cached


async def test_a_stream_without_an_end_is_a_failure() -> None:
    desk = Desk(["a", CUT_OFF])
    assert reason(await desk.ask("⟦|⟧")) is Reason.BACKEND_ERROR
    await desk.ask("⟦|⟧")
    assert len(desk.backend.requests) == 2


async def test_a_failing_prepare_is_a_reason_too() -> None:
    def broken() -> None:
        raise BackendError(ErrorKind.BAD_MODEL, "not a GGUF file")

    desk = Desk()
    desk.backend._ready = broken
    assert await desk.ask("⟦|⟧") == NoSuggestion(Reason.BACKEND_ERROR, "not a GGUF file")
    assert desk.backend.requests == []


async def test_without_infilling_the_prompt_is_formed_anew() -> None:
    def script(request: BackendRequest) -> Script:
        if isinstance(request.prompt, InfillPrompt):
            desk.backend.capabilities = RAW
            return [BackendError(ErrorKind.INFILL_UNSUPPORTED, "no")]
        return ["b"]

    desk = Desk(script)
    outcome = await desk.ask("a = ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert isinstance(desk.backend.requests[1].prompt, RawPrompt)
    assert len(desk.backend.requests) == 2


async def test_without_infilling_and_without_another_shape_it_is_an_error() -> None:
    desk = Desk(
        [BackendError(ErrorKind.INFILL_UNSUPPORTED, "no")], capabilities=Capabilities(frozenset({Shape.INFILL}))
    )
    assert await desk.ask("⟦|⟧") == NoSuggestion(Reason.BACKEND_ERROR, "no")
    assert len(desk.backend.requests) == 1


@pytest.mark.parametrize("kind", [ErrorKind.INFILL_UNSUPPORTED, ErrorKind.CONTEXT_TOO_LONG])
async def test_no_second_try_once_text_came_and_no_third_one(kind: ErrorKind) -> None:
    late = Desk(["a", BackendError(kind, "late")])
    assert reason(await late.ask("⟦|⟧")) is Reason.BACKEND_ERROR
    assert len(late.backend.requests) == 1
    always = Desk([BackendError(kind, "always")])
    assert reason(await always.ask("⟦|⟧")) is Reason.BACKEND_ERROR
    assert len(always.backend.requests) == 2


async def test_too_long_a_prompt_is_halved_and_stays_so() -> None:
    def script(request: BackendRequest) -> Script:
        assert isinstance(request.prompt, InfillPrompt)
        lengths.append(len(request.prompt.prefix))
        return ["x"] if len(request.prompt.prefix) < 3500 else [BackendError(ErrorKind.CONTEXT_TOO_LONG, "long")]

    lengths: list[int] = []
    desk = Desk(script)
    long = "value = 1\n" * 2000
    assert isinstance(await desk.ask(long + "⟦|⟧"), Completion)
    assert isinstance(await desk.ask(long + "y = ⟦|⟧"), Completion)
    assert lengths[0] > 3500
    assert lengths[1] <= lengths[0] * 0.55
    assert len(lengths) == 3


async def test_a_chat_models_code_is_taken_out_of_what_it_says() -> None:
    def script(request: BackendRequest) -> Script:
        assert isinstance(request.prompt, ChatPrompt)
        assert request.max_tokens > 128
        return ["Here is the code:\n\n```py", "thon\n    return a + b\n``", "`\nIt adds."]

    desk = Desk(script, capabilities=Capabilities(frozenset({Shape.CHAT})))
    outcome = await desk.ask("def add(a, b):\n    return ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "a + b"
    assert desk.backend.closed == 1  # what it says behind the code is not waited for
    assert desk.trace is not None
    assert desk.trace.shape == "chat"


async def test_shapes_are_given_up_one_by_one() -> None:
    def script(request: BackendRequest) -> Script:
        tried.append(type(request.prompt))
        if isinstance(request.prompt, ChatPrompt):
            return ["```\nb\n```"]
        kinds = {InfillPrompt: ErrorKind.INFILL_UNSUPPORTED, RawPrompt: ErrorKind.SHAPE_UNSUPPORTED}
        return [BackendError(kinds[type(request.prompt)], "no")]

    tried: list[type] = []
    desk = Desk(script, capabilities=Capabilities(frozenset(Shape), remote=False))
    desk.backend.model = "qwen2.5-coder"
    assert isinstance(await desk.ask("a = ⟦|⟧\n"), Completion)
    assert tried == [InfillPrompt, RawPrompt, ChatPrompt]


async def test_a_service_without_any_shape_left_is_an_error() -> None:
    desk = Desk([BackendError(ErrorKind.SHAPE_UNSUPPORTED, "no")], capabilities=Capabilities(frozenset(Shape)))
    assert reason(await desk.ask("⟦|⟧")) is Reason.BACKEND_ERROR
    assert len(desk.backend.requests) == 3


@pytest.mark.parametrize(
    ("mode", "marked", "expected"),
    [
        ("auto", "⟦|⟧\n", "a\nb"),
        ("auto", "f(⟦|⟧):\n", "a\nb"),
        ("auto", "⟦|⟧ + c\n", "a"),
        ("never", "⟦|⟧\n", "a"),
        ("always", "⟦|⟧ + c\n", "a\nb"),
    ],
)
async def test_one_line_or_several(mode: str, marked: str, expected: str) -> None:
    outcome = await Desk(["a\nb"], multiline=mode).ask(marked)
    assert isinstance(outcome, Completion)
    assert outcome.text == expected


CANARY = "ghp_" + "A1b2C3d4E5" * 4


@pytest.mark.parametrize(
    ("remote", "redacted", "leaks"), [(True, True, False), (True, False, True), (False, True, True)]
)
async def test_keys_leave_the_machine_only_if_allowed(remote: bool, redacted: bool, leaks: bool) -> None:
    settings = EngineSettings(privacy=PrivacySettings(redact=redacted))
    desk = Desk(capabilities=replace(RAW, remote=remote), settings=settings)
    half = len(CANARY) // 2
    inside = f"k = '{CANARY[:half]}⟦|⟧{CANARY[half:]}'\n"
    await desk.ask(
        f"a = '{CANARY}'\n{inside}b = '{CANARY}'\n",
        others=(other("o.py", f"c = '{CANARY}'\n"),),
        trigger=Trigger.INVOKED,
    )
    prompt = desk.backend.requests[0].prompt
    assert isinstance(prompt, RawPrompt)
    assert (CANARY in prompt.text) is leaks
    assert (CANARY[:half] in prompt.text) is leaks
    assert "o.py" in prompt.text


async def test_ignored_files_are_never_quoted() -> None:
    desk = Desk(capabilities=RAW)
    others = (other(".env", "KEY=1"), other("sub/server.pem", "x"), other("o.py", "shown = 1\n"))
    await desk.ask("⟦|⟧", others=others)
    prompt = desk.backend.requests[0].prompt
    assert isinstance(prompt, RawPrompt)
    assert "shown" in prompt.text
    assert ".env" not in prompt.text
    assert ".pem" not in prompt.text


async def test_sources_of_context_can_be_turned_off() -> None:
    desk = Desk(capabilities=RAW, settings=EngineSettings(context=ContextSettings(sources=())))
    await desk.ask("a⟦|⟧", others=(other("o.py", "shown = 1\n"),), trigger=Trigger.INVOKED)
    assert desk.backend.requests[0].prompt == RawPrompt((Piece("a"),))


async def test_tokens_of_the_users_own_text_go_broken_and_come_back_whole() -> None:
    desk = Desk(["'<\u200b|endo", "ftext|>'", "<|endoftext|>", "junk"], capabilities=RAW)
    outcome = await desk.ask("A = '<|endoftext|>'\nB = ⟦|⟧\n")
    assert isinstance(outcome, Completion)
    assert outcome.text == "'<|endoftext|>'"
    prompt = desk.backend.requests[0].prompt
    assert isinstance(prompt, RawPrompt)
    assert "<|endoftext|>" not in prompt.text


async def test_the_window_keeps_within_what_the_backend_holds() -> None:
    desk = Desk(capabilities=replace(RAW, context_tokens=300))
    await desk.ask("value = 1\n" * 2000 + "⟦|⟧" + "\nvalue = 2" * 2000)
    (request,) = desk.backend.requests
    assert isinstance(request.prompt, RawPrompt)
    assert request.max_tokens == 128
    assert 200 < len(request.prompt.text) <= (300 - 128) * 3


async def test_the_guess_of_the_family_is_told_and_a_wrong_setting_too() -> None:
    desk = Desk()
    await desk.ask("⟦|⟧")
    assert [(key, warning) for key, _, warning in desk.notices.seen] == [("family-guess:scripted", False)]
    notices = Notices()
    engine = Engine(
        [desk.backend],
        EngineSettings(),
        traces=desk.traces,
        families={"scripted": "qwen"},
        clock=desk.clock,
        observer=notices,
    )
    await engine.complete(context("⟦|⟧", trigger=Trigger.INVOKED), desk.traces.begin("1", "file:///a.py"))
    key, message, warning = notices.seen[0]
    assert (key, warning) == ("family:qwen", True)
    assert "qwen2.5-coder" in message
