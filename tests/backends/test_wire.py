"""Golden files: the exact bytes of an answer, what was asked, and what the backend of a kind makes of it.

`tests/golden/wire/KIND/NAME.http` is sent as it is, `NAME.toml` says the rest. Every case runs in one write and byte by
byte, with the log at DEBUG, and fails if the key shows up anywhere.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import tomllib
import traceback
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from backends import registry
from backends.base import (
    Backend,
    BackendError,
    BackendRequest,
    ChatPrompt,
    Delta,
    File,
    InfillPrompt,
    Message,
    Piece,
    Prompt,
    RawPrompt,
    SilentObserver,
)
from backends.settings import BackendSettings
from tests.backends.contract import kind_of
from tests.services.raw import RawServer, raw_server

FOLDER = Path(__file__).parent.parent / "golden" / "wire"
CASES = sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.toml"))
KEY = "canary-7f3a9c"
TEXTS = {"prefix", "suffix", "path", "language", "extra", "raw", "chat"}
ASK = {*TEXTS, "max_tokens", "temperature", "stop", "parameters", "model", "settings"}
WIRE = {"path", "headers", "absent_headers", "body"}
GOOD = {"text", "deltas", "finish", "usage", "reused"}
BAD = {"error", "status", "says", "never", "retry_after_s", "text", "shapes"}


def load(text: str) -> dict[str, Any]:
    """Read a case; refuse one with a key nobody knows or without anything asserted."""
    case = tomllib.loads(text)
    expect = case["expect"]
    for found, known in (
        (case, {"about", "ending", "ask", "wire", "expect"}),
        (case["ask"], ASK),
        (case.get("wire", {}), WIRE),
        (expect, BAD if "error" in expect else GOOD),
    ):
        if unknown := found.keys() - known:
            raise ValueError(f"unknown keys {sorted(unknown)}")
    if not expect or ("error" in expect and not expect.get("says")):
        raise ValueError("the case asserts nothing")
    if "error" not in expect and not expect.keys() & {"text", "deltas"}:
        raise ValueError("the case asserts no text")
    return case


def prompt_of(ask: dict[str, Any]) -> Prompt:
    if "raw" in ask:
        return RawPrompt((Piece(ask["raw"]),))
    if "chat" in ask:
        return ChatPrompt(tuple(Message(**message) for message in ask["chat"]))
    extra = tuple(File(**file) for file in ask.get("extra", ()))
    return InfillPrompt(ask["prefix"], ask["suffix"], ask.get("path"), None, extra, ask.get("language", ""))


def request_of(ask: dict[str, Any]) -> BackendRequest:
    return BackendRequest(
        prompt_of(ask), ask.get("max_tokens", 32), float(ask.get("temperature", 0.0)), tuple(ask.get("stop", ()))
    )


def check_wire(raw: RawServer, wire: dict[str, Any]) -> None:
    (sent,) = raw.requests
    head, _, body = sent.decode("utf-8").partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    method, _, target = first.removesuffix(" HTTP/1.1").partition(" ")
    path, _, query = target.partition("?access_token=")
    assert (query or headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")) == KEY
    if "path" in wire:
        assert (method, path) == ("POST", wire["path"])
    assert headers.items() >= wire.get("headers", {}).items()
    assert not headers.keys() & set(wire.get("absent_headers", ()))
    if "body" in wire:
        assert json.loads(body) == json.loads(wire["body"])


def check_answer(deltas: list[Delta], expect: dict[str, Any]) -> None:
    assert all(delta.finish is None for delta in deltas[:-1])
    if "deltas" in expect:
        assert [delta.text for delta in deltas] == expect["deltas"]
    if "text" in expect:
        assert "".join(delta.text for delta in deltas) == expect["text"]
    finish, usage = deltas[-1].finish, deltas[-1].usage
    assert finish is not None
    assert finish.value == expect.get("finish", finish.value)
    if "usage" in expect:
        assert usage is not None
        assert [usage.prompt_tokens, usage.generated_tokens] == expect["usage"]
        assert usage.reused_tokens == expect.get("reused")


def check_error(error: BackendError, deltas: list[Delta], expect: dict[str, Any]) -> None:
    assert error.kind.value == expect["error"], error.message
    assert error.status == expect.get("status")
    assert error.retry_after_s == expect.get("retry_after_s")
    for words in expect["says"]:
        assert words in error.message
    for words in expect.get("never", ()):
        assert words not in error.message
    assert len(error.message) < 500
    assert "\n" not in error.message
    if "text" in expect:
        assert "".join(delta.text for delta in deltas) == expect["text"]


def build(kind: str, url: str, ask: dict[str, Any]) -> Backend:
    module, _, attribute = registry.KINDS[kind].partition(":")
    settings = BackendSettings(
        kind=kind,
        url=url,
        model=ask.get("model", kind_of(kind).model),
        key_env="MIDFILL_TEST_KEY",
        parameters=ask.get("parameters", {}),
        **ask.get("settings", {}),
    )
    built: Backend = getattr(importlib.import_module(module), attribute)("work", settings, SilentObserver())
    return built


@pytest.mark.parametrize("split", [0, 1])
@pytest.mark.parametrize("name", CASES)
async def test_wire(name: str, split: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    case = load((FOLDER / f"{name}.toml").read_text("utf-8"))
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("MIDFILL_TEST_KEY", KEY)
    deltas: list[Delta] = []
    failed: BackendError | None = None
    async with raw_server(
        (FOLDER / f"{name}.http").read_bytes(), split=split, ending=case.get("ending", "close")
    ) as raw:
        backend = build(name.partition("/")[0], raw.url, case["ask"])
        try:
            async with asyncio.timeout(20), aclosing(backend.stream(request_of(case["ask"]))) as stream:
                async for delta in stream:
                    deltas.append(delta)
        except BackendError as error:
            failed = error
        await backend.aclose()
        if "error" in case["expect"]:
            assert failed
            check_error(failed, deltas, case["expect"])
            if "shapes" in case["expect"]:
                assert sorted(shape.value for shape in backend.capabilities.shapes) == case["expect"]["shapes"]
        else:
            assert failed is None
            check_answer(deltas, case["expect"])
        check_wire(raw, case.get("wire", {}))
        shown = [repr(backend), backend.fingerprint, repr(failed), *traceback.format_exception(failed), caplog.text]
    assert KEY not in "".join(shown)


def test_every_answer_has_its_case_and_every_case_its_answer() -> None:
    assert CASES
    assert sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.glob("*/*.http")) == CASES


@pytest.mark.parametrize(
    "text",
    [
        "[ask]\nprefix = ''\nsuffix = ''\n[expect]\nfinish = 'stop'",
        "[ask]\nprefix = ''\nsuffix = ''\n[expect]",
        "[ask]\nprefix = ''\nsuffix = ''\n[expect]\nerror = 'auth'\nsays = []",
        "[ask]\nprefix = ''\nsuffix = ''\n[expect]\ntext = 'x'\nstatus = 200",
        "[ask]\nprefix = ''\nsufix = ''\n[expect]\ntext = 'x'",
        "extra = 1\n[ask]\nprefix = ''\n[expect]\ntext = 'x'",
    ],
)
def test_cases_that_assert_nothing_or_hold_unknown_keys_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"unknown keys|asserts no"):
        load(text)
