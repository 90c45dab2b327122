"""Recorded typing, and the tool that makes it of commits."""

from __future__ import annotations

import ast
import itertools
import json
import random
import subprocess
from pathlib import Path

import pytest

from benchmarks import record_typing
from lsp_server.bench import recording
from lsp_server.bench.recording import Key, Run, Session, apply

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "benchmarks" / "typing_data.json"


def replay(session: Session) -> dict[str, str]:
    texts = dict(session.files)
    for key in session.typing():
        assert 0 <= key.start <= key.end <= len(texts[key.path])
        texts[key.path] = apply(texts[key.path], key)
    return texts


def test_a_run_is_typed_key_by_key() -> None:
    run = Run(900, "a.py", 2, 1, ("i\n  f\n", ("taken",), "x\b"))
    keys = list(Session({"a.py": "abcd"}, (run,)).typing())
    changes = [(key.start, key.end, key.text) for key in keys]
    assert changes == [
        (2, 3, ""),
        (2, 2, "i"),
        (3, 3, "\n  "),
        (6, 6, "f"),
        (7, 7, "\n"),
        (8, 8, "taken"),
        (13, 13, "x"),
        (13, 14, ""),
    ]
    assert keys[0].pause_ms == 900
    assert all(key.pause_ms >= 40 for key in keys)
    assert [key.cursor for key in keys][:3] == [2, 3, 6]


def test_much_is_taken_away_at_once_and_little_bit_by_bit() -> None:
    long, short = (Session({"a": "x" * 20}, (Run(0, "a", 2, count, ()),)) for count in (13, 3))
    assert [(key.start, key.end) for key in long.typing()] == [(2, 15)]
    assert [(key.start, key.end) for key in short.typing()] == [(4, 5), (3, 4), (2, 3)]


def test_pauses_are_the_same_each_time() -> None:
    session = Session({"a": ""}, (Run(0, "a", 0, 0, ("typed\ntext",)),))
    assert list(session.typing()) == list(session.typing())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "new = 1\n"),
        ("a\nb\nc\n", "a\nc\n"),
        ("a\nb\nc\n", "a\nB\nb\nc\nd\n"),
        ("def f():\n    return 1\n", "def f(x):\n    y = x\n    return y\n"),
        ("a = 1", "a = 12\n"),
        ("a\n\n\nb\n", "a\n\n\n\n\nb\n"),
        ("x\ny\nz\n" * 5, "x\nz\n" * 5 + "x = '\b'"[:3]),
    ],
)
def test_a_change_of_a_file_replays_to_the_new_text(old: str, new: str) -> None:
    for seed in range(20):
        draw = random.Random(seed)
        found = record_typing.ordered(record_typing.hunks("a.py", old, new), draw)
        made = json.loads(json.dumps(list(record_typing.runs(found, draw))))
        session = Session({"a.py": old}, tuple(recording.run_of(run) for run in made))
        assert replay(session)["a.py"] == new


def test_commits_become_sessions(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        name = ("-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    for number in range(2):
        for name in ("a.py", "b.py", "c.txt"):
            (tmp_path / name).write_text("kept = 0\n" * 1500 + f"first = {number}\n" * (1 + 10 * number))
        git("add", ".")
        git("commit", "-q", "-m", "x")
    sessions = record_typing.record(tmp_path, 5, random.Random(1))
    assert [set(session["files"]) for session in sessions] == [{"a.py", "b.py"}]
    made = Session(sessions[0]["files"], tuple(recording.run_of(run) for run in sessions[0]["runs"]))
    assert replay(made) == dict.fromkeys(("a.py", "b.py"), "kept = 0\n" * 1500 + "first = 1\n" * 11)


def test_the_shipped_recording_has_what_it_is_for() -> None:
    assert SHIPPED.stat().st_size < 300_000
    sessions = recording.read(SHIPPED)
    for session in sessions:
        for path, text in replay(session).items():
            ast.parse(text, path)
    keys = [key for session in sessions for key in session.typing()]
    typed = [key for key in keys if len(key.text) == 1]
    assert len(typed) > 1000
    assert any(len(session.files) > 1 for session in sessions)
    assert any(len(key.text) > 5 and not key.text.isspace() for key in keys)
    assert any(key.end == key.start + 1 and not key.text for key in keys)
    assert any(b.start < a.start - 100 for a, b in itertools.pairwise(keys) if a.path == b.path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"sessions": [{"files": {}}]}', '{"sessions": [{"files": {}, "runs": [[1]]}]}']
)
def test_what_is_no_recording_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "typing.json"
    path.write_text(content)
    with pytest.raises(recording.RecordingError):
        recording.read(path)
    with pytest.raises(recording.RecordingError, match="cannot be read"):
        recording.read(tmp_path / "missing.json")


def test_a_key_says_where_the_cursor_is() -> None:
    assert Key(0, "a", 3, 5, "ab").cursor == 5
