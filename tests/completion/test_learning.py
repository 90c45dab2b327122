"""What is learned from suggestions that were accepted and rejected, and how it is kept."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import platformdirs
import pytest

from completion.learning import Learned, learned_file
from completion.types import Completion, Reason
from tests.completion.desk import Desk, reason


def rejected(times: int, learned: Learned | None = None, language: str = "python") -> Learned:
    learned = learned or Learned()
    for _ in range(times):
        learned.shown(language)
        learned.rejected(language)
    return learned


def test_little_is_no_evidence() -> None:
    assert rejected(19).patience("python") == 1
    assert rejected(19).least("python") == 1


def test_where_suggestions_keep_being_rejected_they_come_later_and_must_be_longer() -> None:
    some, many = rejected(25), rejected(200)
    assert 1 < some.patience("python") < many.patience("python") == 2.5
    assert 1 < some.least("python") < many.least("python") == 12
    assert many.patience("go") == many.least("go") == 1


def test_accepting_brings_them_back() -> None:
    learned = rejected(200)
    for _ in range(40):
        learned.accepted("python")
    assert learned.patience("python") == learned.least("python") == 1


async def test_a_short_suggestion_is_not_worth_a_look_where_they_are_rejected() -> None:
    desk = Desk(["b)"], learned=rejected(200))
    assert reason(await desk.ask("f(a, ⟦|⟧\n")) is Reason.TOO_SHORT
    desk = Desk(["b)"], learned=rejected(200), learning=False)
    assert isinstance(await desk.ask("f(a, ⟦|⟧\n"), Completion)
    desk = Desk(["something_longer(b)"], learned=rejected(200))
    assert isinstance(await desk.ask("f(a, ⟦|⟧\n"), Completion)


def test_it_is_kept_and_other_editors_are_added_to(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "learned.json"
    first, second = Learned(path), Learned(path)
    rejected(3, first)
    second.shown("go")
    second.accepted("go", partly=True)
    first.save()
    second.save()
    first.save()  # nothing is new: nothing is added twice
    assert Learned(path).counts() == {
        "go": {"shown": 1, "accepted": 0, "partiallyAccepted": 1, "rejected": 0},
        "python": {"shown": 3, "accepted": 0, "partiallyAccepted": 0, "rejected": 3},
    }
    assert [each.name for each in path.parent.iterdir()] == ["learned.json"]


def test_without_news_no_file_is_made(tmp_path: Path) -> None:
    Learned(tmp_path / "learned.json").save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b'{"languages": 3}',
        b'{"languages": {"go": {"shown": "x"}}}',
        b'{"languages": {"go": {"shown": 1, "accepted": 1, "partially": 1, "rejected": 1, "rate": null}}}',
        b'{"languages": {"go": {"shown": Infinity, "accepted": 1, "partially": 1, "rejected": 1, "rate": 0}}}',
        b'{"languages": {"go": {"shown": 1, "accepted": 1, "partially": 1, "rejected": 1, "rate": 1'
        + b"0" * 400
        + b"}}}",
        b"[" * 300_000,
    ],
)
def test_what_is_no_file_of_ours_counts_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "learned.json"
    path.write_bytes(content)
    learned = Learned(path)
    assert learned.counts() == {}
    rejected(1, learned).save()
    assert json.loads(path.read_bytes())["languages"]["python"]["rejected"] == 1


def test_a_place_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rejected(1, Learned(tmp_path / "file" / "learned.json")).save()


@pytest.mark.parametrize(("where", "name"), [(Path, "open"), (tempfile, "mkstemp"), (os, "replace")])
def test_a_file_that_is_held_by_another_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, name: str
) -> None:
    """On Windows a file that is open elsewhere can be neither read nor replaced; what is new is added the next time."""

    def held(*_: object, **__: object) -> object:
        raise PermissionError

    path = tmp_path / "learned.json"
    rejected(3, Learned(path)).save()
    other = rejected(1, Learned(path))
    with monkeypatch.context() as patched:
        patched.setattr(where, name, held)
        other.save()
    assert Learned(path).counts()["python"]["rejected"] == 3
    other.save()
    assert Learned(path).counts()["python"]["rejected"] == 4
    assert [each.name for each in tmp_path.iterdir()] == ["learned.json"]


def test_what_is_in_use_stays_in_the_file_and_it_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "learned.json"
    learned = rejected(1, Learned(path))
    for number in range(250):
        learned.shown(f"{number}")
    learned.shown("\N{PILE OF POO}" * 100_000)
    learned.save()
    again = Learned(path)
    again.shown("50")
    again.shown("new")
    again.save()
    kept = Learned(path).counts()
    assert len(kept) == 200
    assert (kept["50"]["shown"], kept["new"]["shown"], "51" in kept) == (2, 1, False)


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` that stands for no folder would be made one in the current folder."""
    monkeypatch.setattr(platformdirs, "user_state_path", lambda name: Path("~/.local/state") / name)
    assert learned_file() is None
    monkeypatch.setattr(platformdirs, "user_state_path", lambda name: Path.cwd() / name)
    assert learned_file() == Path.cwd() / "midfill" / "learned.json"
