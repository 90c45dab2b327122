"""The local backend: deltas, errors, cancel, crash and restart of its child; real processes, tiny models."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest

from backends import llama_cpp
from backends.base import (
    BackendError,
    BackendRequest,
    ChatPrompt,
    Delta,
    ErrorKind,
    File,
    Finish,
    InfillPrompt,
    Message,
    Piece,
    RawPrompt,
    Shape,
    SilentObserver,
    Usage,
)
from backends.llama_cpp import LlamaCppBackend
from backends.settings import BackendSettings
from tests import tiny_gguf
from tests.llama_child import needs_llama

HELLO = {"<|fim_middle|>": "h", "h": "e", "e": "l", "l": "o"}
INFILL = BackendRequest(InfillPrompt("ab", "cd"), 16)
LONG = BackendRequest(RawPrompt((Piece("abcdefgh" * 250),)), 2000)

Make = Callable[..., LlamaCppBackend]

needs_suspend = pytest.mark.skipif(sys.platform == "win32", reason="needs a process that can be stopped")


class Log:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.notices: list[str] = []
        self.progressed: list[tuple[float | None, bool]] = []

    def notice(self, key: str, message: str, *, warning: bool = True) -> None:
        self.notices.append(message)

    def progress(self, key: str, title: str, fraction: float | None, *, done: bool = False) -> None:
        self.progressed.append((fraction, done))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return tiny_gguf.scripted(folder / "hello.gguf", HELLO)


@pytest.fixture(scope="module")
def endless(folder: Path) -> Path:
    """Long enough at work that a test finds it there."""
    return tiny_gguf.random(folder / "endless.gguf", width=384, layers=8)


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[LlamaCppBackend] = []

    def build(path: Path | str, observer: Any = None, **settings: Any) -> LlamaCppBackend:
        settings = {"context_tokens": 4096, "threads": 1, "timeout_s": 60.0, **settings}
        told = observer or SilentObserver()
        backend = LlamaCppBackend("local", BackendSettings("llama-cpp", model_path=str(path), **settings), told)
        made.append(backend)
        return backend

    yield build
    for backend in made:
        await backend.aclose()


async def answer(backend: LlamaCppBackend, request: BackendRequest = INFILL) -> tuple[str, Delta]:
    text = ""
    async with aclosing(backend.stream(request)) as deltas:
        async for delta in deltas:
            text += delta.text
    assert delta.finish is not None
    return text, delta


async def failure(awaitable: Awaitable[object]) -> BackendError:
    with pytest.raises(BackendError) as caught:
        await awaitable
    return caught.value


async def first_delta(backend: LlamaCppBackend, request: BackendRequest, seen: asyncio.Event) -> None:
    """Consume until cancelled; `seen` tells that the child is at work."""
    async with aclosing(backend.stream(request)) as deltas:
        async for _ in deltas:
            seen.set()


@needs_llama
class TestStream:
    async def test_text_then_one_last_delta_with_counts(self, make: Make, model: Path) -> None:
        backend = make(model)
        async with aclosing(backend.stream(INFILL)) as deltas:
            received = [delta async for delta in deltas]
        assert received[0] == Delta("h", usage=Usage(7, 0, 1)), "the first token goes out at once"
        assert "".join(delta.text for delta in received) == "helo"
        assert [delta.finish for delta in received] == [None] * (len(received) - 1) + [Finish.STOP]
        assert received[-1].usage == Usage(7, 0, 4)

    async def test_length_and_stop(self, make: Make, model: Path) -> None:
        backend = make(model)
        text, last = await answer(backend, BackendRequest(InfillPrompt("ab", "cd"), 2))
        assert (text, last.finish) == ("he", Finish.LENGTH)
        text, last = await answer(backend, BackendRequest(InfillPrompt("ab", "cd"), 9, stop=("l",)))
        assert (text, last.finish) == ("hel", Finish.STOP)

    async def test_the_next_request_reuses_the_common_beginning(self, make: Make, model: Path) -> None:
        backend = make(model)
        await answer(backend, BackendRequest(InfillPrompt("abcdef", "x"), 4))
        _, last = await answer(backend, BackendRequest(InfillPrompt("abcdeg", "x"), 4))
        assert last.usage is not None
        assert last.usage.reused_tokens == 6

    async def test_other_files_and_names_arrive(self, make: Make, model: Path) -> None:
        prompt = InfillPrompt("ab", "cd", path="m.py", repo="shop", extra=(File("a.py", "A"),))
        _, last = await answer(make(model), BackendRequest(prompt, 4))
        assert last.usage is not None
        assert last.usage.prompt_tokens == len("abcd") + 3 + len("shop\na.py\nA\nm.py\n") + 3

    async def test_text_of_any_kind_crosses_the_pipe(self, make: Make, model: Path) -> None:
        prompt = InfillPrompt('"\\\u2028\x00\n😀\ud83d', "\r\f")
        assert (await answer(make(model), BackendRequest(prompt, 4)))[0] == "helo"

    async def test_concurrent_requests_wait_for_each_other(self, make: Make, model: Path) -> None:
        backend = make(model)
        answers = await asyncio.gather(*(answer(backend) for _ in range(4)))
        assert [text for text, _ in answers] == ["helo"] * 4

    async def test_chat_is_refused(self, make: Make, model: Path) -> None:
        request = BackendRequest(ChatPrompt((Message("user", "hi"),)), 4)
        assert (await failure(answer(make(model), request))).kind is ErrorKind.BAD_REQUEST

    async def test_infill_is_refused_without_infill_tokens(self, make: Make, folder: Path) -> None:
        backend = make(tiny_gguf.scripted(folder / "plain.gguf", {"b": "y"}, fim=False))
        assert (await failure(answer(backend))).kind is ErrorKind.INFILL_UNSUPPORTED
        assert (await answer(backend, BackendRequest(RawPrompt((Piece("ab"),)), 4)))[0] == "y"
        assert backend.capabilities.shapes == {Shape.RAW}
        assert not backend.capabilities.extra_files


@needs_llama
class TestPrepare:
    async def test_capabilities(self, make: Make, model: Path) -> None:
        backend = make(model, context_tokens=1000)
        assert Shape.INFILL not in backend.capabilities.shapes
        await backend.prepare()
        capabilities = backend.capabilities
        assert capabilities.shapes == {Shape.INFILL, Shape.RAW}
        assert (capabilities.literal_text, capabilities.extra_files, capabilities.remote) == (True, True, False)
        assert capabilities.context_tokens == 1000

    async def test_concurrent_calls_share_one_start(self, make: Make, model: Path) -> None:
        log = Log()
        backend = make(model, log)
        await asyncio.gather(*(backend.prepare() for _ in range(5)), answer(backend))
        assert [done for _, done in log.progressed].count(True) == 1
        assert log.progressed[-1] == (1.0, True)

    async def test_who_is_cancelled_does_not_stop_the_load(self, make: Make, model: Path) -> None:
        log = Log()
        backend = make(model, log)
        impatient = asyncio.create_task(answer(backend))
        await asyncio.sleep(0)
        patient = asyncio.create_task(backend.prepare())
        await asyncio.sleep(0)
        impatient.cancel()
        await patient
        assert impatient.cancelled()
        assert [done for _, done in log.progressed].count(True) == 1

    async def test_probe(self, make: Make, model: Path) -> None:
        checks = {check.name: check for check in (await make(model).probe()).checks}
        assert set(checks) == {"model", "load", "speed", "infill"}
        assert all(check.ok for check in checks.values())
        assert str(model) in checks["model"].detail
        assert "own tokens" in checks["infill"].detail

    async def test_parameters_that_are_not_known_are_told(self, make: Make, model: Path) -> None:
        log = Log()
        await make(model, log, parameters={"top_q": 1, "seed": 2}).prepare()
        assert len(log.notices) == 1
        assert "top_q" in log.notices[0]
        assert "judge, seed, top_k" in log.notices[0]

    async def test_names(self, make: Make, model: Path) -> None:
        assert make(model).model == "hello"
        assert make(model, model="qwen2.5-coder").model == "qwen2.5-coder"
        assert make(model).fingerprint == make(model).fingerprint
        assert make(model).fingerprint != make(model, parameters={"seed": 1}).fingerprint


class TestModelFile:
    async def test_missing(self, make: Make) -> None:
        error = await failure(make("~/no such model.gguf").prepare())
        assert error.kind is ErrorKind.SETTINGS
        assert "~/no such model.gguf" in error.message

    async def test_not_gguf(self, make: Make, tmp_path: Path) -> None:
        (tmp_path / "model.gguf").write_text("version https://git-lfs")
        error = await failure(answer(make(tmp_path / "model.gguf")))
        assert error.kind is ErrorKind.BAD_MODEL
        assert "not a GGUF file" in error.message

    async def test_too_large_for_memory(self, make: Make, tmp_path: Path) -> None:
        path = tmp_path / "large.gguf"
        path.write_bytes(b"GGUF")
        os.truncate(path, 2**42)  # holes take no room
        error = await failure(make(path).prepare())
        assert error.kind is ErrorKind.BAD_MODEL
        assert "4398.0 GB" in error.message

    @needs_llama
    async def test_damaged_is_tried_once_until_the_file_changes(self, make: Make, tmp_path: Path, model: Path) -> None:
        path = tmp_path / "damaged.gguf"
        shutil.copy(model, path)
        os.truncate(path, path.stat().st_size - 1000)
        log = Log()
        backend = make(path, log)
        first, second = await failure(backend.prepare()), await failure(backend.prepare())
        assert first.kind is ErrorKind.BAD_MODEL
        assert str(path) in first.message
        assert first.message == second.message
        assert [done for _, done in log.progressed].count(True) == 1
        shutil.copy(model, path)
        assert (await answer(backend))[0] == "helo"

    async def test_a_failed_probe_is_a_check(self, make: Make, tmp_path: Path) -> None:
        (check,) = (await make(tmp_path / "none.gguf").probe()).checks
        assert not check.ok
        assert "none.gguf" in check.detail


@needs_llama
class TestCancel:
    @pytest.mark.parametrize(
        "request_", [LONG, BackendRequest(RawPrompt((Piece("ab"),)), 2000)], ids=["prompt", "answer"]
    )
    async def test_a_cancelled_task_leaves_at_once_and_the_next_request_is_answered(
        self, make: Make, endless: Path, request_: BackendRequest
    ) -> None:
        backend = make(endless)
        await backend.prepare()
        pid = backend.pid
        seen = asyncio.Event()
        if request_ is LONG:
            seen.set()
        task = asyncio.create_task(first_delta(backend, request_, seen))
        await seen.wait()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        _, last = await answer(backend, BackendRequest(RawPrompt((Piece("xy"),)), 2))
        assert last.usage is not None
        assert last.usage.generated_tokens == 2
        assert backend.pid == pid

    async def test_a_closed_generator_stops_the_child(self, make: Make, endless: Path) -> None:
        backend = make(endless)
        async with aclosing(backend.stream(BackendRequest(RawPrompt((Piece("ab"),)), 2000))) as deltas:
            async for _ in deltas:
                break
        _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ac"),)), 2))
        assert last.usage is not None
        assert last.usage.reused_tokens == 1

    async def test_a_waiting_request_that_is_cancelled_never_starts(self, make: Make, endless: Path) -> None:
        backend = make(endless)
        seen = asyncio.Event()
        running = asyncio.create_task(first_delta(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2000), seen))
        await seen.wait()
        waiting = asyncio.create_task(answer(backend, BackendRequest(RawPrompt((Piece("zz"),)), 2)))
        await asyncio.sleep(0)
        waiting.cancel()
        running.cancel()
        await asyncio.wait({waiting, running})
        _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ac"),)), 2))
        assert last.usage is not None
        assert last.usage.reused_tokens == 1  # of "ab": "zz" was never evaluated

    async def test_nothing_written_before_the_deadline(self, make: Make, endless: Path) -> None:
        error = await failure(answer(make(endless, timeout_s=0.001), LONG))
        assert error.kind is ErrorKind.TIMEOUT
        assert "completion.prompt_tokens" in error.message

    @needs_suspend
    async def test_what_was_written_before_the_deadline_is_the_answer(self, make: Make, endless: Path) -> None:
        """The child is stopped after its first text, so that the deadline comes before its last."""
        backend = make(endless, timeout_s=2.0)
        received: list[Delta] = []
        async with aclosing(backend.stream(BackendRequest(RawPrompt((Piece("ab"),)), 100_000))) as deltas:
            async for delta in deltas:
                if not received:
                    psutil.Process(backend.pid).suspend()
                received.append(delta)
        assert received[0].text
        assert received[-1].finish is Finish.LENGTH


@needs_llama
class TestCrash:
    async def test_killed_in_the_middle_of_a_request(self, make: Make, endless: Path) -> None:
        backend = make(endless)
        seen = asyncio.Event()
        task = asyncio.create_task(first_delta(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2000), seen))
        await seen.wait()
        assert backend.pid is not None
        psutil.Process(backend.pid).kill()
        error = await failure(task)
        assert error.kind is ErrorKind.CRASHED
        assert "starts it again" in error.message
        if sys.platform != "win32":
            assert "SIGKILL, perhaps because memory ran out" in error.message
        _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2))
        assert last.finish is Finish.LENGTH

    async def test_killed_while_idle(self, make: Make, model: Path) -> None:
        backend = make(model)
        await answer(backend)
        assert backend.pid is not None
        child = psutil.Process(backend.pid)
        process = backend._process
        assert process is not None
        child.kill()
        await asyncio.wait({process._reader})  # until its parent knows
        assert backend.pid is None
        assert (await answer(backend))[0] == "helo"
        assert backend.pid != child.pid

    @needs_suspend
    async def test_a_child_that_hangs_is_replaced(
        self, make: Make, endless: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(llama_cpp, "IDLE_S", 0.05)
        backend = make(endless)
        async with aclosing(backend.stream(BackendRequest(RawPrompt((Piece("ab"),)), 2000))) as deltas:
            async for _ in deltas:
                assert backend.pid is not None
                hanging = psutil.Process(backend.pid)
                hanging.suspend()
                break
        _, last = await answer(backend, BackendRequest(RawPrompt((Piece("ab"),)), 2))
        assert last.finish is Finish.LENGTH
        await asyncio.to_thread(hanging.wait, 30)


@needs_llama
class TestClose:
    async def test_the_child_ends(self, make: Make, endless: Path) -> None:
        backend = make(endless)
        seen = asyncio.Event()
        task = asyncio.create_task(first_delta(backend, LONG, asyncio.Event()))
        second = asyncio.create_task(backend.prepare())
        second.add_done_callback(lambda _: seen.set())
        await seen.wait()
        assert backend.pid is not None
        child = psutil.Process(backend.pid)
        await backend.aclose()
        await asyncio.to_thread(child.wait, 30)
        assert (await failure(task)).kind is ErrorKind.CRASHED
        await backend.aclose()
        assert "shut down" in (await failure(answer(backend))).message

    async def test_in_the_middle_of_a_load(self, make: Make, endless: Path) -> None:
        backend = make(endless)
        task = asyncio.create_task(backend.prepare())
        await asyncio.sleep(0)
        await backend.aclose()
        assert "shut down" in (await failure(task)).message
        assert backend.pid is None

    async def test_before_anything(self, make: Make, model: Path) -> None:
        await make(model).aclose()
