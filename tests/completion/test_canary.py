"""No secret reaches the wire: 200 of them in the completed files and beside, 1,000 requests, every byte seen."""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Iterator
from urllib.parse import quote

import pytest

from backends.base import Backend, SilentObserver
from backends.registry import create
from backends.settings import BackendSettings
from completion.clock import SystemClock
from completion.engine import Engine
from completion.settings import CompletionSettings, EngineSettings, PrivacySettings
from completion.trace import TraceLog
from completion.types import CompletionContext, DocumentSnapshot, PlainText, Trigger
from tests.completion.canaries import Canary, canaries, files
from tests.services.listening import listening

REQUESTS = 1000
PART = 12  # code points of a secret that must not be seen in a row

# One for each shape of prompt, and one that nothing is known of.
KINDS = (
    ("ffm", "qwen2.5-coder-7b-32k", ""),
    ("openai", "qwen2.5-coder-7b", "template"),
    ("openai", "some-model", "chat"),
    ("ollama", "qwen2.5-coder:7b", ""),
)
ANSWERS = {
    "text_infilling": 'data: {"generated_text": "x", "finish_reason": "eos_token"}\n\n',
    "chat/completions": 'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
    "completions": 'data: {"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n',
    "api/generate": '{"model": "m", "response": "x", "done": true, "done_reason": "stop"}\n',
}


class Wire:
    """A proxy that forwards nothing: whatever is sent through it is kept and answered."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.seen.append(head + await reader.readexactly(length))
            path = head.split(b" ")[1].decode()
            body = next(answer for end, answer in ANSWERS.items() if path.endswith(end)).encode()
            kind = "application/x-ndjson" if path.endswith("generate") else "text/event-stream"
            writer.write(
                f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
            )
            await writer.drain()


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    wire = Wire()
    async with listening(wire.serve) as wire.port:
        yield wire


def backends(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> list[Backend]:
    """A proxy may be anywhere, so what is asked through one is remote."""
    monkeypatch.setenv("CANARY_KEY", "key-of-the-service")
    return [
        create(
            f"{kind}-{mode}",
            BackendSettings(
                kind=kind,
                model=model,
                mode=mode,
                url="http://service.example/v1",
                key_env="CANARY_KEY",
                proxy=f"http://127.0.0.1:{wire.port}",
            ),
            SilentObserver(),
        )
        for kind, model, mode in KINDS
    ]


def contexts(planted: list[Canary], seed: int = 7) -> Iterator[CompletionContext]:
    """Cursors anywhere, inside secrets too; every third file ends at its cursor, as if it were just being typed."""
    rng = random.Random(seed)
    texts = list(files(planted))
    token = planted[20].secret  # of GitHub
    documents = [
        DocumentSnapshot(
            f"file:///w/{number}.py",
            "python",
            1,
            PlainText(text),
            f"src/{token if number % 9 == 0 else 'a'}/{number}.py",
        )
        for number, text in enumerate(texts)
    ]
    for count in range(REQUESTS):
        number = count % len(texts)
        text, document = texts[number], documents[number]
        if count % 2:
            canary = rng.choice([each for each in planted if each.shown in text])
            offset = text.index(canary.shown) + rng.randrange(len(canary.shown) + 1)
        else:
            offset = rng.randrange(len(text) + 1)
        if count % 3 == 0:
            document = DocumentSnapshot(document.uri, "python", count, PlainText(text[:offset]), document.path)
        others = tuple(rng.sample([each for each in documents if each.uri != document.uri], 5))
        repo = f"repo-{token}" if count % 10 == 0 else "repo"
        yield CompletionContext(document, offset, Trigger.INVOKED, None, repo, others)


def parts(secret: str) -> set[bytes]:
    """Every 12 code points of a secret, as they are, and as JSON, URLs and base64 write them."""
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode(), quote(secret, safe="").encode()}
    for shift in range(3):
        # without the characters that hold bits of what stands before and behind
        forms.add(base64.b64encode(b"x" * shift + secret.encode())[4 if shift else 0 : -4])
    return {form[at : at + PART] for form in forms for at in range(len(form) - PART + 1)}


def leaked(seen: list[bytes], planted: list[Canary]) -> dict[str, int]:
    """Canaries of which something was seen, and how often."""
    owners = {part: canary for canary in planted for part in parts(canary.secret)}
    found: dict[str, int] = {}
    for data in seen:
        for at in range(len(data) - PART + 1):
            canary = owners.get(data[at : at + PART])
            if canary is not None:
                found[canary.shown] = found.get(canary.shown, 0) + 1
    return found


async def ask_all(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, planted: list[Canary], *, redact: bool, most: int
) -> None:
    settings = EngineSettings(
        completion=CompletionSettings(prompt_tokens=900, cache_entries=0),
        privacy=PrivacySettings(redact=redact, ignore_files=()),
    )
    clock = SystemClock()
    traces = TraceLog(None, clock=clock)
    services = backends(wire, monkeypatch)
    engines = [Engine([each], settings, traces=traces) for each in services]
    for count, context in zip(range(most), contexts(planted), strict=False):
        await engines[count % len(engines)].complete(context, traces.begin(str(count), context.document.uri))
    for engine, service in zip(engines, services, strict=True):
        await engine.aclose()
        await service.aclose()


async def test_none_of_200_secrets_is_sent(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted = canaries()
    assert len({canary.secret for canary in planted}) == 200
    assert len({canary.kind for canary in planted}) == 20
    await ask_all(wire, monkeypatch, planted, redact=True, most=REQUESTS)
    assert len(wire.seen) == REQUESTS
    found = leaked(wire.seen, planted)
    with capsys.disabled():
        print(f"\ncanaries seen on the wire: {len(found)} of {len(planted)}, in {len(wire.seen)} requests")
    assert found == {}
    assert sum(data.count(b"def step_") for data in wire.seen) > REQUESTS, "the code itself was sent"


async def test_without_redaction_they_would_be_seen(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = canaries()
    await ask_all(wire, monkeypatch, planted, redact=False, most=80)
    assert len(leaked(wire.seen, planted)) > 100
