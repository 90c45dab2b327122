"""One worker for several servers: met through a socket, fair, private to the user, and gone when nobody wants it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import psutil
import pytest

from backends import _llama_process
from backends._llama_link import place
from backends._llama_process import command, environment
from backends.base import (
    BackendError,
    BackendRequest,
    ErrorKind,
    Finish,
    InfillPrompt,
    Piece,
    RawPrompt,
    SilentObserver,
)
from backends.llama_cpp import LlamaCppBackend
from backends.llama_worker.main import NICE
from backends.settings import BackendSettings
from tests import tiny_gguf
from tests.llama_child import needs_llama

pytestmark = [
    needs_llama,
    pytest.mark.skipif(sys.platform == "win32", reason="asyncio has no sockets in the file system there"),
]

SHORT = BackendRequest(RawPrompt((Piece("ab"),)), 3)
LONG = BackendRequest(RawPrompt((Piece("abcdefgh" * 250),)), 2000)

Make = Callable[..., LlamaCppBackend]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough at work that a test finds it there; never ends by itself."""
    return tiny_gguf.random(tmp_path_factory.mktemp("models") / "slow.gguf", width=384, layers=8)


@pytest.fixture
async def make(slow: Path) -> AsyncIterator[Make]:
    made: list[LlamaCppBackend] = []

    def build(**settings: Any) -> LlamaCppBackend:
        settings = {"context_tokens": 4096, "threads": 1, "timeout_s": 100.0, "model_path": str(slow), **settings}
        made.append(LlamaCppBackend("local", BackendSettings("llama-cpp", **settings), SilentObserver()))
        return made[-1]

    yield build
    for backend in made:
        await backend.aclose()


async def finish(backend: LlamaCppBackend, request: BackendRequest = SHORT) -> Finish | None:
    async with aclosing(backend.stream(request)) as deltas:
        finishes = [delta.finish async for delta in deltas]
    return finishes[-1]


def only(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def folder_of(path: Path) -> list[Path]:
    return list(path.parent.iterdir())


def refused(path: Path, sent: bytes) -> None:
    """Send what is no request, and wait until the worker has closed the connection."""
    with socket.socket(socket.AF_UNIX) as hostile:
        hostile.connect(str(path))
        hostile.sendall(sent)
        hostile.shutdown(socket.SHUT_WR)
        hostile.settimeout(30)
        while hostile.recv(1 << 16):
            pass


class AtWork:
    """A long request of a backend that has begun to write."""

    def __init__(self, backend: LlamaCppBackend, request: BackendRequest = LONG) -> None:
        self.deltas = 0
        self.begun, self.more = asyncio.Event(), asyncio.Event()
        self._backend, self._request = backend, request
        self.task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async with aclosing(self._backend.stream(self._request)) as deltas:
            async for _ in deltas:
                self.deltas += 1
                self.begun.set()
                self.more.set()

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


def process(backend: LlamaCppBackend) -> psutil.Process:
    assert backend.pid is not None
    return psutil.Process(backend.pid)


async def gone(worker: psutil.Process) -> None:
    await asyncio.to_thread(worker.wait, 60)


async def test_the_same_model_is_in_memory_once(make: Make) -> None:
    first, second = make(), make()
    assert tuple(await asyncio.gather(finish(first), finish(second))) == (
        Finish.LENGTH,
        Finish.LENGTH,
    )  # both start at once
    assert first.pid == second.pid
    other = make(context_tokens=2048)
    assert await finish(other) is Finish.LENGTH
    assert other.pid != first.pid


async def test_nobody_waits_for_anothers_end_and_a_cancel_is_ones_own(make: Make) -> None:
    first, second = make(), make()
    await first.prepare()
    work = AtWork(first)
    await work.begun.wait()
    assert await finish(second) is Finish.LENGTH
    assert not work.task.done()
    other = AtWork(second)
    await other.begun.wait()
    await other.end()
    before = work.deltas
    while work.deltas < before + 5:
        assert not work.task.done()
        work.more.clear()
        await work.more.wait()
    await work.end()
    assert await finish(first) is Finish.LENGTH
    assert first.pid == second.pid


async def test_a_cancelled_prompt_does_not_touch_the_other_one(make: Make) -> None:
    first, second = make(), make()
    await first.prepare()
    ask = asyncio.create_task(finish(first, BackendRequest(LONG.prompt, 2)))
    await second.prepare()
    for _ in range(5):
        other = AtWork(second, BackendRequest(InfillPrompt("x" * 1500, "y" * 400), 100))
        await asyncio.sleep(0)
        await other.end()
    assert await ask is Finish.LENGTH


async def test_a_killed_worker_comes_back_for_both(make: Make) -> None:
    first, second = make(), make()
    works = [AtWork(first), AtWork(second)]
    for work in works:
        await work.begun.wait()
    killed = process(first)
    killed.kill()
    await asyncio.wait({work.task for work in works})
    for work in works:
        error = work.task.exception()
        assert isinstance(error, BackendError)
        assert error.kind is ErrorKind.CRASHED
        assert "starts it again" in error.message
    assert tuple(await asyncio.gather(finish(first), finish(second))) == (Finish.LENGTH, Finish.LENGTH)
    assert first.pid == second.pid != killed.pid


async def test_it_ends_after_the_last_one_has_left(make: Make) -> None:
    first, second = make(), make()
    await finish(first)
    await finish(second)
    worker = process(first)
    await first.aclose()
    assert await finish(second) is Finish.LENGTH
    assert second.pid == worker.pid
    await second.aclose()
    await gone(worker)


async def test_who_started_it_leaves_without_taking_it_along(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_llama_process, "_CLOSE_S", 600.0)  # nor waits for its end
    first, second = make(), make()
    await finish(first)
    await finish(second)
    worker = process(first)
    async with asyncio.timeout(60):
        await first.aclose()
    assert await finish(second) is Finish.LENGTH
    assert second.pid == worker.pid


async def test_who_leaves_one_that_takes_nothing_leaves_it_to_the_others(make: Make) -> None:
    first, second = make(), make()
    await first.prepare()
    await second.prepare()
    worker = process(first)
    worker.suspend()
    work = AtWork(first, BackendRequest(RawPrompt((Piece("ab" * 4_000_000),)), 1))  # more than a socket holds
    await asyncio.sleep(0)
    await first.aclose()
    worker.resume()
    await work.end()
    assert await finish(second) is Finish.LENGTH
    assert second.pid == worker.pid


async def test_it_outlives_a_killed_server(make: Make, slow: Path, runtime_folder: Path) -> None:
    """A server that is killed at work neither takes the worker along nor leaves its work behind."""
    code = (
        "import asyncio, sys\nfrom contextlib import aclosing\nfrom backends.base import *\n"
        "from backends.llama_cpp import LlamaCppBackend\nfrom backends.settings import BackendSettings\n"
        "async def main():\n"
        "    settings = BackendSettings('llama-cpp', model_path=sys.argv[1], context_tokens=4096, threads=1)\n"
        "    backend = LlamaCppBackend('local', settings, SilentObserver())\n"
        "    request = BackendRequest(RawPrompt((Piece('abcdefgh' * 250),)), 2000)\n"
        "    async with aclosing(backend.stream(request)) as deltas:\n"
        "        async for _ in deltas:\n"
        "            print(backend.pid, flush=True)\n"
        "asyncio.run(main())\n"
    )
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(slow), stdout=subprocess.PIPE)
    assert server.stdout is not None
    worker = psutil.Process(int(await server.stdout.readline()))
    backend = make()
    await backend.prepare()
    assert backend.pid == worker.pid
    server.kill()
    await server.communicate()
    assert await finish(backend) is Finish.LENGTH
    assert backend.pid == worker.pid
    await backend.aclose()
    await gone(worker)


async def test_a_model_that_nobody_asks_is_unloaded(make: Make) -> None:
    backend = make(idle_unload_s=0.1)
    await finish(backend)
    worker = process(backend)
    await gone(worker)
    assert await finish(backend) is Finish.LENGTH
    assert backend.pid != worker.pid


async def test_the_model_steps_back_behind_the_editor(make: Make) -> None:
    backend = make()
    await backend.prepare()
    assert process(backend).nice() == min(19, os.nice(0) + NICE)


async def test_nobody_else_can_come_in(make: Make, runtime_folder: Path) -> None:
    backend = make()
    await backend.prepare()
    path = only(runtime_folder, "*.sock")
    assert stat.S_ISSOCK(path.stat().st_mode)
    modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (runtime_folder, *folder_of(path))}
    assert len(modes) == 4  # the folder, the socket, the lock and the log
    assert not any(mode & 0o077 for mode in modes.values()), modes


def test_a_folder_that_others_can_enter_is_not_used(tmp_path: Path) -> None:
    safe = tmp_path / "safe"
    safe.mkdir(mode=0o700)
    assert place(["model"], safe) is not None
    safe.chmod(0o750)
    assert place(["model"], safe) is None
    safe.chmod(0o700)
    for mode, good in ((0o777, False), (0o1777, True), (0o775, False), (0o755, True)):
        tmp_path.chmod(mode)
        assert (place(["model"], safe) is not None) == good
    (tmp_path / "link").symlink_to(safe)
    assert place(["model"], tmp_path / "link") is None
    assert place(["model"], tmp_path / ("long" * 40)) is None
    file = tmp_path / "file"
    file.write_text("")
    assert place(["model"], file) is None


async def test_where_workers_cannot_be_met_each_has_its_own(make: Make, runtime_folder: Path) -> None:
    await asyncio.to_thread(runtime_folder.write_text, "no folder")
    first, second = make(), make()
    assert await finish(first) is Finish.LENGTH
    assert await finish(second) is Finish.LENGTH
    assert first.pid != second.pid


async def test_where_no_socket_can_be_made_each_has_its_own(make: Make, runtime_folder: Path) -> None:
    backend = make()
    await backend.prepare()
    path = only(runtime_folder, "*.sock")
    worker = process(backend)
    await backend.aclose()
    await gone(worker)
    await asyncio.to_thread(path.mkdir)
    first, second = make(), make()
    assert await finish(first) is Finish.LENGTH
    assert await finish(second) is Finish.LENGTH
    assert first.pid != second.pid


async def test_what_is_no_request_costs_only_the_one_who_sent_it(make: Make, runtime_folder: Path) -> None:
    backend = make()
    await finish(backend)
    path = only(runtime_folder, "*.sock")
    for sent in (b"[]", b"\xff", b'{"op": "cancel"}', b'{"id": 1}', b'{"id": 1, "op": "generate"}', b'{"op": 1'):
        refused(path, sent + b"\n")
    worker = process(backend)
    assert await finish(backend) is Finish.LENGTH
    assert backend.pid == worker.pid


async def test_a_worker_that_says_nothing_is_not_waited_for(make: Make, slow: Path, runtime_folder: Path) -> None:
    backend = make()
    await finish(backend)
    path = only(runtime_folder, "*.sock")
    await backend.aclose()
    with socket.socket(socket.AF_UNIX) as silent:
        path.unlink(missing_ok=True)
        silent.bind(str(path))
        silent.listen(1)
        assert await finish(make()) is Finish.LENGTH


def test_the_second_worker_at_a_place_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.sock"
    first = subprocess.Popen([*command(), str(path)], env=environment(), stdin=subprocess.DEVNULL)
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            while peer.connect_ex(str(path)):
                assert first.poll() is None
                os.sched_yield()
            hello = json.loads(peer.makefile().readline())
            assert hello["pid"] == first.pid
            second = subprocess.run([*command(), str(path)], env=environment(), timeout=60, check=False)
            assert second.returncode == 0
            assert first.poll() is None
        assert first.wait(60) == 0
        assert not path.exists()
    finally:
        first.kill()
        first.wait()
