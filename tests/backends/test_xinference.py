"""The xinference backend: templates, code routes, how its services refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    ChatPrompt,
    ErrorKind,
    File,
    Finish,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
)
from backends.settings import BackendSettings
from backends.xinference import XinferenceBackend
from completion.clock import SystemClock
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings
from completion.trace import TraceLog
from completion.types import Completion, CompletionContext, DocumentSnapshot, Outcome, PlainText, Trigger
from tests.backends.contract import Notices
from tests.services.common import Answer
from tests.services.xinference import MODEL, XinferenceService

TEXT = "def add(a, b):\n    return "
INFILL = BackendRequest(InfillPrompt(TEXT, "\n"), 32, stop=("1", "2", "3", "4", "5"))
FILES = BackendRequest(InfillPrompt(TEXT, "\n", "a.py", None, (File("lib/b.py", "b = 1\n"),)), 32)
RAW = BackendRequest(RawPrompt((Piece("x = "),)), 32)
TALK = BackendRequest(ChatPrompt((Message("user", "u"),)), 32)
UNKNOWN = "llama-3-instruct"  # a model of no family with a form of its own
REPLY = Answer(deltas=("Here is the code:\n\n```py", "thon\n    return a + b\n", "```\nIt adds."), final="done")


@pytest.fixture(scope="module")
def running() -> Iterator[XinferenceService]:
    with XinferenceService() as service:
        yield service


@pytest.fixture
def service(running: XinferenceService) -> XinferenceService:
    """As its class says, whatever the test before made of it."""
    for name in ("code", "loading", "old"):
        running.__dict__.pop(name, None)
    running.infills = True
    running.reset()
    return running


@pytest.fixture
async def make(
    service: XinferenceService, monkeypatch: pytest.MonkeyPatch, notices: Notices
) -> AsyncIterator[Callable[..., Any]]:
    monkeypatch.setenv("MIDFILL_TEST_KEY", "test-key")
    built: list[Backend] = []

    def build(**settings: Any) -> Backend:
        defaults = {"kind": "xinference", "url": service.url, "model": MODEL, "key_env": "MIDFILL_TEST_KEY"}
        built.append(XinferenceBackend("work", BackendSettings(**(defaults | settings)), notices))
        return built[-1]

    yield build
    for backend in built:
        await backend.aclose()


async def complete(backend: Backend, others: tuple[DocumentSnapshot, ...] = ()) -> Outcome:
    """What the whole engine makes of it."""
    log = TraceLog(None, clock=SystemClock())
    engine = Engine(
        [backend], EngineSettings(completion=CompletionSettings(debounce_ms=0, speculate="never")), traces=log
    )
    document = DocumentSnapshot("file:///a.py", "python", 1, PlainText(TEXT + "\n"), "a.py")
    context = CompletionContext(document, len(TEXT), Trigger.INVOKED, others=others)
    return await engine.complete(context, log.begin("1", document.uri))


def asked(service: XinferenceService) -> list[tuple[str, Any]]:
    """Path and prompt of each request."""
    return [(seen.path, seen.body.get("prompt", "chat")) for seen in service.log]


@pytest.mark.parametrize("slash", ["", "/", "/v1", "/v1/"])
async def test_the_family_has_its_form_at_the_merged_route(service: XinferenceService, make: Any, slash: str) -> None:
    assert isinstance(await complete(make(url=service.url + slash)), Completion)
    form = f"<|fim_prefix|>{TEXT}<|fim_suffix|>\n<|fim_middle|>"
    assert [path for path, _ in asked(service)] == ["/v1/code/prompt", "/v1/completions"]
    assert asked(service)[1][1] == form
    assert service.log[1].body["stream"] is True


@pytest.mark.parametrize("code", [False, True])
async def test_a_known_family_does_not_need_the_code_routes(service: XinferenceService, make: Any, code: bool) -> None:
    service.code = code
    backend = make()
    for _ in range(2):
        assert isinstance(await complete(backend), Completion)
    assert [path for path, _ in asked(service)] == ["/v1/code/prompt", "/v1/completions", "/v1/completions"]


async def test_without_code_routes_an_unknown_model_is_asked_in_a_chat(service: XinferenceService, make: Any) -> None:
    service.reset(REPLY)
    outcome = await complete(make(model=UNKNOWN))
    assert isinstance(outcome, Completion)
    assert outcome.text == "a + b"
    assert [path for path, _ in asked(service)] == ["/v1/code/prompt", "/v1/chat/completions"]


async def test_with_code_routes_it_infills(service: XinferenceService, make: Any, notices: Notices) -> None:
    service.code = True
    assert isinstance(await complete(make(model=UNKNOWN)), Completion)
    body = service.log[1].body
    assert service.log[1].path == "/v1/code/completions"
    assert (body["mode"], body["prompt"], body["suffix"], body["stream"]) == ("infill", TEXT, "\n", False)
    assert not body.keys() & {"files", "file_path", "repo_name"}
    assert notices.notices == []


async def test_with_code_routes_other_files_are_sent_apart(service: XinferenceService, make: Any) -> None:
    service.code = True
    other = DocumentSnapshot("file:///lib/b.py", "python", 1, PlainText("b = 1\n"), "lib/b.py")
    assert isinstance(await complete(make(model=UNKNOWN), (other,)), Completion)
    body = service.log[1].body
    assert (body["files"], body["repo_name"], body["file_path"]) == ({"lib/b.py": "b = 1\n"}, "project", "a.py")
    assert body["prompt"] == TEXT


async def test_a_model_that_does_not_infill_is_asked_in_completion_mode(
    service: XinferenceService, make: Any, notices: Notices
) -> None:
    service.code, service.infills = True, False
    backend = make(model=UNKNOWN)
    for _ in range(2):
        assert isinstance(await complete(backend), Completion)
    bodies = [seen.body for seen in service.log]
    assert [body["mode"] for body in bodies] == ["infill", "completion", "completion"]
    assert "suffix" not in bodies[1]
    assert [message for _, message in notices.notices if "infill" in message] == [
        f"The model {UNKNOWN} does not infill at this service. Completion mode is used, which does not see the text"
        " behind the cursor."
    ]


async def test_code_mode_is_used_where_it_is_set(service: XinferenceService, make: Any, collect: Any) -> None:
    service.code = True
    backend = make(mode="code")
    await backend.prepare()
    assert service.log == []
    for request in (INFILL, FILES, RAW):
        (delta,) = await collect(backend, request)
        assert (delta.text, delta.finish) == ("return a + b", Finish.STOP)
    assert [seen.path for seen in service.log] == ["/v1/code/completions"] * 3
    infill, files, raw = (seen.body for seen in service.log)
    assert infill["stop"] == ["1", "2", "3", "4"]
    assert files["files"] == {"lib/b.py": "b = 1\n"}
    assert (raw["mode"], raw["prompt"]) == ("completion", "x = ")


async def test_code_mode_where_the_model_does_not_infill(
    service: XinferenceService, make: Any, notices: Notices
) -> None:
    service.code, service.infills = True, False
    backend = make(mode="code")
    for _ in range(2):
        assert isinstance(await complete(backend), Completion)
    assert [seen.body["mode"] for seen in service.log] == ["infill", "completion", "completion"]


async def test_code_mode_where_there_are_no_code_routes(service: XinferenceService, make: Any, collect: Any) -> None:
    with pytest.raises(BackendError, match='mode = "code" is set') as caught:
        await collect(make(mode="code"), INFILL)
    assert caught.value.kind is ErrorKind.MODEL_NOT_FOUND


@pytest.mark.parametrize("mode", ["template", "chat"])
async def test_other_modes_ask_nothing_first(service: XinferenceService, make: Any, mode: str) -> None:
    service.reset(REPLY if mode == "chat" else Answer())
    assert isinstance(await complete(make(mode=mode)), Completion)
    assert len(service.log) == 1


def test_it_has_no_suffix_mode(make: Any) -> None:
    with pytest.raises(BackendError, match="'code', 'template', 'chat'"):
        make(mode="suffix")


async def test_a_stream_without_done(service: XinferenceService, make: Any, collect: Any) -> None:
    for request, final in ((RAW, "normal"), (TALK, "done")):
        service.reset(Answer(finish_reason="length", final=final))
        deltas = await collect(make(), request)
        assert "".join(delta.text for delta in deltas) == "return a + b"
        assert (deltas[-1].finish, deltas[-1].usage.prompt_tokens) == (Finish.LENGTH, 21)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("429: Rate limit reached for the model. Request limit 1", ErrorKind.RATE_LIMITED),
        ("[address=127.0.0.1:1, pid=2] engine died", ErrorKind.STREAM_ERROR),
    ],
)
async def test_a_text_as_the_error_in_a_stream(
    service: XinferenceService, make: Any, collect: Any, said: str, kind: ErrorKind
) -> None:
    service.reset(Answer(stream_error=said))
    with pytest.raises(BackendError) as caught:
        await collect(make(), RAW)
    assert caught.value.kind is kind
    assert said[:30] in caught.value.message


@pytest.mark.parametrize(
    ("how", "settings", "kind", "status"),
    [
        ({}, {"model": "other"}, ErrorKind.MODEL_NOT_FOUND, 404),
        ({"old": True}, {"model": "other"}, ErrorKind.MODEL_NOT_FOUND, 400),
        ({"loading": True}, {}, ErrorKind.OVERLOADED, 503),
        ({}, {"parameters": {"logit_bias": {}}}, ErrorKind.BAD_REQUEST, 501),
        ({}, {"parameters": {"temperature": 9}}, ErrorKind.BAD_REQUEST, 500),
    ],
)
async def test_refusals(
    service: XinferenceService,
    make: Any,
    collect: Any,
    how: dict[str, Any],
    settings: dict[str, Any],
    kind: ErrorKind,
    status: int,
) -> None:
    for name, value in how.items():
        setattr(service, name, value)
    with pytest.raises(BackendError) as caught:
        await collect(make(**settings), RAW)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert caught.value.retry_after_s == (30.0 if status == 503 else None)


async def test_what_is_not_known_is_asked_again(service: XinferenceService, make: Any) -> None:
    service.code = service.loading = True
    backend = make(model=UNKNOWN)
    await backend.prepare()
    assert Shape.INFILL not in backend.capabilities.shapes
    service.loading = False
    await backend.prepare()
    assert Shape.INFILL in backend.capabilities.shapes
    await backend.prepare()
    assert len(service.log) == 2


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "template, for unknown families chat"),
        ({"code": True}, "template, for unknown families the code routes, which infill"),
        ({"code": True, "infills": False}, "the code routes, in completion mode"),
    ],
)
async def test_doctor_says_how_the_service_is_asked(
    service: XinferenceService, make: Any, how: dict[str, Any], told: str
) -> None:
    for name, value in how.items():
        setattr(service, name, value)
    checks = {check.name: check for check in (await make().probe()).checks}
    assert told in checks["mode"].detail
    assert checks["request"].ok
    formed = r"<fim_prefix>def add(a, b):\n    return <fim_suffix>\n<fim_middle>"
    assert (formed in checks["prompt"].detail) if how == {"code": True} else "prompt" not in checks
