"""The FFM backend against the loopback service: what is asked, what is made of the answer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from backends import keys
from backends.base import (
    BackendError,
    BackendRequest,
    ChatPrompt,
    ErrorKind,
    Finish,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
    Usage,
)
from completion.types import Completion
from tests.backends.asking import suggestion
from tests.services.ffm import Answer, FfmService
from tests.services.raw import events, http, raw_server

RAW = BackendRequest(RawPrompt((Piece("def add(a, b):\n"),)), max_tokens=16)


def infill(prefix: str = "a = ", suffix: str = "\n", **settings: Any) -> BackendRequest:
    return BackendRequest(InfillPrompt(prefix, suffix), **{"max_tokens": 32, **settings})


def text_of(deltas: list[Any]) -> str:
    return "".join(delta.text for delta in deltas)


async def test_an_infill_is_asked_as_the_service_documents_it(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    backend = make_ffm(ffm.url + "/")  # a slash at the end is no second one
    await collect(backend, infill("def f():\n    ", "\n\nf()\n", temperature=0.2, stop=("\n\n", "", "def ")))
    (seen,) = ffm.log
    assert seen.path == "/api/models/text_infilling"
    assert seen.headers["x-api-key"] == "test-key"
    assert "x-api-host" not in seen.headers
    assert seen.headers["content-type"] == "application/json"
    assert seen.body == {
        "model": "qwen2.5-coder-7b-32k",
        "inputs": "def f():\n    <FILL_ME>\n\nf()\n",
        "stream": True,
        "parameters": {"max_new_tokens": 32, "temperature": 0.2, "stop_sequences": ["\n\n", "def "]},
    }


async def test_deltas_finish_and_usage(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    ffm.reset(Answer(deltas=("total", "", " =", " a"), finish_reason="length", extra={"new_field": [1]}))
    deltas = await collect(make_ffm(ffm.url), infill())
    assert [delta.text for delta in deltas] == ["total", " =", " a"]
    assert [delta.finish for delta in deltas] == [None, None, Finish.LENGTH]
    assert deltas[-1].usage == Usage(prompt_tokens=21, generated_tokens=4)


@pytest.mark.parametrize("reason", ["eos_token", "stop_sequence", "stop"])
async def test_any_other_finish_reason_is_a_stop(ffm: FfmService, make_ffm: Any, collect: Any, reason: str) -> None:
    ffm.reset(Answer(finish_reason=reason))
    assert (await collect(make_ffm(ffm.url), infill()))[-1].finish is Finish.STOP


async def test_the_time_taken_ends_an_answer_too(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    ffm.reset(Answer(final="time"))
    deltas = await collect(make_ffm(ffm.url), infill())
    assert (text_of(deltas), deltas[-1].finish) == ("return a + b", Finish.STOP)


async def test_a_final_record_that_repeats_the_answer_is_not_added_to_it(
    ffm: FfmService, make_ffm: Any, collect: Any
) -> None:
    ffm.reset(Answer(deltas=("total", " =", " a"), final="concatenation"))
    assert text_of(await collect(make_ffm(ffm.url), infill())) == "total = a"


@pytest.mark.parametrize("deltas", [("(", "(x"), ("    ", "    ", "        x"), ("a", "b", "ac")])
async def test_a_final_record_that_resembles_the_answer_is_a_delta(
    ffm: FfmService, make_ffm: Any, collect: Any, deltas: Any
) -> None:
    ffm.reset(Answer(deltas=deltas))
    assert text_of(await collect(make_ffm(ffm.url), infill())) == "".join(deltas)


async def test_a_whole_answer(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    ffm.reset(Answer(finish_reason="length"))
    (delta,) = await collect(make_ffm(ffm.url, parameters={"stream": False, "top_k": 10}), infill())
    assert (delta.text, delta.finish, delta.usage) == ("return a + b", Finish.LENGTH, Usage(21, None, 4))
    assert ffm.log[0].body["stream"] is False
    assert ffm.log[0].body["parameters"] == {"max_new_tokens": 32, "temperature": 0.01, "top_k": 10}


async def test_a_raw_prompt_goes_to_generate(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    assert text_of(await collect(make_ffm(ffm.url), RAW)) == "return a + b"
    assert ffm.log[0].path == "/api/models/generate"
    assert ffm.log[0].headers["x-api-host"] == "afs-inference"
    assert ffm.log[0].body["inputs"] == "def add(a, b):\n"


async def test_a_model_that_only_chats_is_asked_in_a_conversation(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    backend = make_ffm(ffm.url, model="only-chats")
    chat = BackendRequest(ChatPrompt((Message("system", "Be brief."), Message("user", "hi"))), 8)
    for request, kind in ((infill(), ErrorKind.INFILL_UNSUPPORTED), (RAW, ErrorKind.SHAPE_UNSUPPORTED)):
        with pytest.raises(BackendError) as caught:
            await collect(backend, request)
        assert caught.value.kind is kind
    assert backend.capabilities.shapes == {Shape.CHAT}
    assert text_of(await collect(backend, chat)) == "return a + b"
    assert ffm.log[-1].path == "/api/models/conversation"
    assert [message["role"] for message in ffm.log[-1].body["messages"]] == ["system", "human"]


@pytest.mark.parametrize(
    ("status", "detail", "chats"),
    [
        (400, "generate is not supported by this model", True),
        (400, "Deprecated: use Conversation", True),
        (422, "this model is for chat only", True),
        (410, "gone", True),
        (404, "Not Found", True),  # the model is there: it was said that it does not infill
        (400, "parameter top_k is not supported by this model", False),
        (400, "generation failed", False),
        (401, "chat only", False),
        (503, "generate is not supported at the moment", False),
    ],
)
async def test_ways_to_say_that_a_model_only_chats(
    ffm: FfmService, make_ffm: Any, collect: Any, status: int, detail: str, *, chats: bool
) -> None:
    backend = make_ffm(ffm.url, model="llama3")
    with pytest.raises(BackendError):
        await collect(backend, infill())
    ffm.reset(Answer(status=status, detail=detail))
    with pytest.raises(BackendError) as caught:
        await collect(backend, RAW)
    assert (caught.value.kind is ErrorKind.SHAPE_UNSUPPORTED) == chats
    assert backend.capabilities.shapes == {Shape.CHAT if chats else Shape.RAW}


async def test_a_model_without_infilling_is_said_once_and_generates(
    ffm: FfmService, make_ffm: Any, collect: Any, notices: Any
) -> None:
    backend = make_ffm(ffm.url, model="ffm-mixtral-8x7b-32k-instruct")
    assert backend.capabilities.shapes == {Shape.INFILL, Shape.RAW}
    for _ in range(2):
        with pytest.raises(BackendError) as caught:
            await collect(backend, infill())
        assert caught.value.kind is ErrorKind.INFILL_UNSUPPORTED
    assert len(ffm.log) == 1  # the second time nobody needs to be asked
    assert len(notices.notices) == 1
    assert "ffm-mixtral-8x7b-32k-instruct does not infill" in notices.notices[0][1]
    assert backend.capabilities.shapes == {Shape.RAW}
    assert text_of(await collect(backend, RAW)) == "return a + b"


@pytest.mark.parametrize(
    ("status", "detail"),
    [
        (200, "text_infilling is not available for this model"),
        (500, "Model foo does not support code infilling."),
        (422, "foo doesn't support fill-in-the-middle"),
        (400, "模型不支援 Code Infilling"),
        (501, "infill not implemented"),
    ],
)
async def test_ways_to_say_that_a_model_does_not_infill(
    ffm: FfmService, make_ffm: Any, collect: Any, status: int, detail: str
) -> None:
    ffm.reset(Answer(status=status, detail=detail))
    backend = make_ffm(ffm.url)
    with pytest.raises(BackendError) as caught:
        await collect(backend, infill())
    assert caught.value.kind is ErrorKind.INFILL_UNSUPPORTED
    assert backend.capabilities.shapes == {Shape.RAW}


@pytest.mark.parametrize(
    ("status", "detail", "kind"),
    [
        (400, "multiple <FILL_ME> are not supported", ErrorKind.BAD_REQUEST),
        (400, "parameter top_k is not supported by this model", ErrorKind.BAD_REQUEST),
        (503, "the model is not available right now", ErrorKind.OVERLOADED),
        (403, "model not allowed for this key", ErrorKind.AUTH),
        (403, "this model is not supported by your plan", ErrorKind.AUTH),
        (404, "model not available", ErrorKind.MODEL_NOT_FOUND),
        (422, [{"loc": ["body", "model"], "msg": "value not supported"}], ErrorKind.BAD_REQUEST),
    ],
)
async def test_other_refusals_do_not_turn_infilling_off(
    ffm: FfmService, make_ffm: Any, collect: Any, notices: Any, status: Any, detail: Any, kind: Any
) -> None:
    ffm.reset(Answer(status=status, detail=detail))
    backend = make_ffm(ffm.url)
    with pytest.raises(BackendError) as caught:
        await collect(backend, infill())
    assert caught.value.kind is kind
    assert backend.capabilities.shapes == {Shape.INFILL, Shape.RAW}
    assert notices.notices == []


async def test_generate_never_turns_infilling_off(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    ffm.reset(Answer(status=400, detail="model does not support infilling"))
    backend = make_ffm(ffm.url)
    with pytest.raises(BackendError) as caught:
        await collect(backend, RAW)
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert backend.capabilities.shapes == {Shape.INFILL, Shape.RAW}


async def test_users_parameters_and_headers_win(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    parameters = {"temperature": 0, "top_p": 1, "frequence_penalty": 1.1, "max_new_tokens": 8}
    backend = make_ffm(ffm.url, parameters=parameters, headers={"X-Api-Host": "afs-inference", "x-team": "core"})
    await collect(backend, infill(stop=("\n",)))
    sent = ffm.log[0].body["parameters"]
    assert sent == {**parameters, "temperature": 0.01, "stop_sequences": ["\n"]}
    assert ffm.log[0].headers["x-api-host"] == "afs-inference"
    assert ffm.log[0].headers["x-team"] == "core"


async def test_at_most_four_stops_are_sent(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    await collect(make_ffm(ffm.url), infill(stop=("a", "b", "c", "d", "e")))
    assert ffm.log[0].body["parameters"]["stop_sequences"] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("top_p", 0),
        ("top_p", 1.5),
        ("top_k", 0),
        ("top_k", 101),
        ("top_k", 5.0),
        ("top_k", True),
        ("max_new_tokens", -1),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("frequence_penalty", 0),
        ("stop_sequences", ["a"] * 5),
        ("stop_sequences", "a"),
        ("stream", "no"),
    ],
)
def test_a_parameter_out_of_range_is_named(make_ffm: Any, name: str, value: Any) -> None:
    with pytest.raises(BackendError, match=rf"^backends\.work\.parameters\.{name}\b.*allowed: ") as caught:
        make_ffm("http://localhost/api", parameters={name: value})
    assert caught.value.kind is ErrorKind.SETTINGS


@pytest.mark.parametrize(
    ("name", "value"), [("top_p", 1), ("top_k", 1), ("top_k", 100), ("frequence_penalty", 0.1), ("seed", 7)]
)
def test_a_parameter_in_range_or_unknown_is_let_through(make_ffm: Any, name: str, value: Any) -> None:
    make_ffm("http://localhost/api", parameters={name: value})


def test_a_model_must_be_named(make_ffm: Any) -> None:
    with pytest.raises(BackendError, match=r"backends\.work\.model is not set"):
        make_ffm("http://localhost/api", model="")


async def test_lone_surrogates_of_an_editor_do_not_stop_a_request(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    await collect(make_ffm(ffm.url), infill('a = "\ud83d'))
    assert ffm.log[0].body["inputs"] == 'a = "?<FILL_ME>\n'


def test_the_fingerprint_tells_models_apart_and_holds_no_secret(make_ffm: Any) -> None:
    one = make_ffm("http://user:secret@localhost/api", headers={"Authorization": "Bearer secret"})
    same = make_ffm("http://localhost/api")
    other = make_ffm("http://localhost/api", model="codellama-7b")
    warm = make_ffm("http://localhost/api", parameters={"temperature": 0.8})
    assert one.fingerprint == same.fingerprint
    assert len({one.fingerprint, other.fingerprint, warm.fingerprint}) == 3


async def test_both_ping_forms_are_passed_over_before_and_between_deltas(
    ffm: FfmService, make_ffm: Any, collect: Any
) -> None:
    for form in ("event", "comment"):
        ffm.reset(Answer(pings=form, ping_ms=2, first_delay_ms=20, delay_ms=10))
        deltas = await collect(make_ffm(ffm.url), infill())
        assert text_of(deltas) == "return a + b"


@pytest.mark.parametrize("form", ["event", "comment"])
async def test_pings_do_not_put_off_the_deadline(ffm: FfmService, make_ffm: Any, collect: Any, form: str) -> None:
    ffm.reset(Answer(pings=form, ping_ms=5, hold_after=0))
    with pytest.raises(BackendError) as caught:
        await collect(make_ffm(ffm.url, timeout_s=0.2), infill())
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "within 0.2 s (timeout_s)" in caught.value.message
    await ffm.until(disconnected=1)


async def test_a_whole_answer_has_the_same_deadline(ffm: FfmService, make_ffm: Any, collect: Any) -> None:
    ffm.reset(Answer(hold_after=0))
    with pytest.raises(BackendError) as caught:
        await collect(make_ffm(ffm.url, timeout_s=0.2, parameters={"stream": False}), infill())
    assert caught.value.kind is ErrorKind.TIMEOUT
    await ffm.until(disconnected=1)


@pytest.mark.parametrize("stream", [True, False])
async def test_connections_are_used_again(ffm: FfmService, make_ffm: Any, collect: Any, stream: bool) -> None:
    backend = make_ffm(ffm.url, parameters={"stream": stream})
    for _ in range(3):
        await collect(backend, infill())
        # What is left of the answer is read behind the caller's back.
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    assert len({seen.port for seen in ffm.log}) == 1


async def test_an_answer_that_goes_on_behind_its_final_record_is_cut_off(make_ffm: Any, collect: Any) -> None:
    record = '{"generated_text": "x", "finish_reason": "length"}'
    async with raw_server(http(events(record)), ending="hold") as raw:
        (delta,) = await collect(make_ffm(raw.url), infill())
        assert delta.finish is Finish.LENGTH
        await raw.gone.wait()


async def test_a_refused_key_of_a_command_is_asked_for_again(
    ffm: FfmService, make_ffm: Any, collect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "RETRY_S", -1.0)
    (tmp_path / "key").write_text("expired")
    code = f"print(open({str(tmp_path / 'key')!r}).read())"
    backend = make_ffm(ffm.url, key_env="", key_command=(sys.executable, "-c", code))
    with pytest.raises(BackendError, match="The API key came from key_command") as caught:
        await collect(backend, infill())
    assert caught.value.kind is ErrorKind.AUTH
    assert "expired" not in caught.value.message
    (tmp_path / "key").write_text("test-key")
    assert text_of(await collect(backend, infill())) == "return a + b"


async def test_probe_of_a_model_that_infills(ffm: FfmService, make_ffm: Any) -> None:
    probe = await make_ffm(ffm.url).probe()
    assert [(check.name, check.ok) for check in probe.checks] == [
        ("key", True),
        ("infill", True),
        ("request", True),
        ("TLS", True),
        ("latency", True),
    ]
    assert "MIDFILL_TEST_KEY" in probe.checks[0].detail
    assert "test-key" not in str(probe)


async def test_probe_of_a_model_that_does_not(ffm: FfmService, make_ffm: Any) -> None:
    probe = await make_ffm(ffm.url, model="llama3").probe()
    found = {check.name: check.ok for check in probe.checks}
    assert found == {"key": True, "infill": False, "request": True, "TLS": True, "latency": True}
    assert [seen.path.rpartition("/")[2] for seen in ffm.log] == ["text_infilling", "generate"]


async def test_probe_without_a_service_or_a_key(make_ffm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = await make_ffm("http://127.0.0.1:9/api").probe()
    assert [(check.name, check.ok) for check in probe.checks] == [("key", True), ("request", False)]
    monkeypatch.delenv("MIDFILL_TEST_KEY")
    probe = await make_ffm("http://127.0.0.1:9/api").probe()
    assert [(check.name, check.ok) for check in probe.checks] == [("key", False)]


@pytest.mark.parametrize(
    ("model", "paths"),
    [
        ("qwen2.5-coder-7b-32k", ["text_infilling"]),
        ("some-model-7b", ["text_infilling", "generate"]),  # of no known family, and the service refuses to infill
        ("only-chats", ["text_infilling", "generate", "conversation"]),
    ],
)
async def test_the_engine_infills_where_it_can(ffm: FfmService, make_ffm: Any, model: str, paths: list[str]) -> None:
    outcome = await suggestion(make_ffm(ffm.url, model=model), "def add(a, b):\n    ⟦|⟧\n\nadd(1, 2)\n")
    assert isinstance(outcome, Completion)
    assert [seen.path.rpartition("/")[2] for seen in ffm.log] == paths
