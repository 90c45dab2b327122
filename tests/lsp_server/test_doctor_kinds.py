"""`midfill doctor` against the loopback service of every kind: what works, what does not, what to change."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

from backends import registry
from backends.base import Check, SilentObserver
from backends.settings import BackendSettings
from lsp_server.commands import doctor
from tests.backends.contract import KEY, kind_of, kinds
from tests.services.common import LoopbackService
from tests.services.proxy import proxy_server

SCREEN = 40  # lines
KEY_ENV = "WORK_KEY"
# Kinds whose service cannot refuse to infill, and what midfill does with them: their prompts are formed here, or by
# a server that forms what suits its model.
NEVER_REFUSES = {"tgi": "in the form of the model family", "tabby": "the service forms the prompt"}
# These need not infill to be well: the other ways are as good.
NO_MATTER = {"openai", "xinference"}

Doctor = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module", params=kinds())
def running(request: pytest.FixtureRequest) -> Iterator[tuple[str, LoopbackService]]:
    with kind_of(request.param).service(key=KEY) as service:
        yield request.param, service


@pytest.fixture
def report(
    running: tuple[str, LoopbackService],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Doctor]:
    name, service = running
    kind = kind_of(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(KEY_ENV, KEY)
    service.reset()

    def run(path: str = "", model: str = "") -> tuple[int, str]:
        table = {"kind": name, "url": service.url + path, "model": model or kind.model, "key_env": KEY_ENV}
        lines = [f"{key} = {json.dumps(value)}" for key, value in (table | dict(kind.settings)).items()]
        config = tmp_path / "config.toml"
        config.write_text("\n".join(["[backends.work]", *lines]), encoding="utf-8")
        code = doctor.command(argparse.Namespace(config=config, json=False))
        shown, errors = capfd.readouterr()
        assert KEY not in shown + errors
        assert "Traceback" not in shown + errors
        assert len(shown.split("\n")) <= SCREEN
        return code, shown

    yield run
    service.infills = True


def failing(shown: str, mark: str = "FAIL") -> list[str]:
    return [line.split(mark, 1)[1].split(":")[0].strip() for line in shown.split("\n") if f"  {mark}  " in line]


def test_it_works(report: Doctor, running: tuple[str, LoopbackService]) -> None:
    code, shown = report()
    assert (code, failing(shown), failing(shown, "warn")) == (0, [], [])
    assert f"ok    key: from environment variable {KEY_ENV}" in shown
    assert f"ok    request: http://127.0.0.1:{running[1].port}" in shown
    assert "ok    latency: first text after" in shown
    assert "ok    asked with: the text on both sides" in shown
    assert shown.rstrip().endswith("All is well.")


def test_wrong_key(report: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_ENV, "some-other-key")
    code, shown = report()
    assert (code, failing(shown)) == (3, ["request"])
    assert "mode:" not in shown  # nothing is known of it
    assert "401" in shown
    assert f"The API key came from environment variable {KEY_ENV}: check it there." in shown
    assert "some-other-key" not in shown
    assert shown.rstrip().endswith("No suggestions until what is marked FAIL is put right.")


def test_wrong_url(report: Doctor, running: tuple[str, LoopbackService]) -> None:
    code, shown = report("/elsewhere")
    assert (code, failing(shown)) == (3, ["request"])
    assert f"http://127.0.0.1:{running[1].port}" in shown
    assert "/elsewhere" in shown
    assert "Check url and model." in shown


def test_no_infill(report: Doctor, running: tuple[str, LoopbackService]) -> None:
    name, service = running
    service.infills = False
    code, shown = report()
    assert (code, failing(shown)) == (0, [])
    assert "ok    request" in shown
    if name in NEVER_REFUSES:
        assert NEVER_REFUSES[name] in shown
        return
    if name in NO_MATTER:
        assert "ok    mode: template" in shown
    else:
        assert failing(shown, "warn") == ["infill"]
        assert "does not infill at this service." in shown
        assert shown.rstrip().endswith("Suggestions can be had. What is marked warn could be better.")
    asked = next(line for line in shown.split("\n") if "asked with" in line)
    assert "in the form of the model family" in asked or "a chat" in asked


@pytest.mark.parametrize("running", ["ollama", "mistral", "xinference"], indirect=True)
def test_wrong_model(report: Doctor) -> None:
    """Their loopback services know their models; what the others' real ones say is in the wire files."""
    code, shown = report(model="no-such-model")
    assert (code, failing(shown)) == (3, ["request"])
    said = next(line for line in shown.split("\n") if "FAIL" in line)
    assert "no-such-model" in said
    assert "Check url and model." in said


@pytest.mark.parametrize("running", ["ffm"], indirect=True)
def test_a_service_elsewhere_without_tls(
    running: tuple[str, LoopbackService], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reached through a proxy that looks for every host on this machine."""
    name, service = running
    service.reset()
    monkeypatch.setenv(KEY_ENV, KEY)
    kind = kind_of(name)

    async def probed() -> list[Check]:
        async with proxy_server() as proxy:
            url = service.url.replace("127.0.0.1", "gpu.example")
            settings = BackendSettings(
                kind=name, url=url, model=kind.model, key_env=KEY_ENV, proxy=proxy.url, **kind.settings
            )
            async with aclosing(registry.create("work", settings, SilentObserver())) as backend:
                return list((await backend.probe()).checks)

    checks = {check.name: check for check in asyncio.run(probed())}
    assert checks["request"].ok
    assert (checks["TLS"].ok, checks["TLS"].warning) == (False, True)
    assert "the key and the code go to gpu.example unencrypted" in checks["TLS"].detail
