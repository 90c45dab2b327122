"""Scenarios as they stand in files: a place in a text, what models write there, and what is right. Asks nobody."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from completion.prompt.families import BY_NAME

FOLDER = Path(__file__).with_name("scenario_data")
CURSOR = "⟦|⟧"
CHAT = "chat"  # stands for a family: the answer is a chat model's reply
_KEYS = frozenset({"name", "language", "path", "text", "answers", "show", "result", "quiet", "before", "invoked"})


class ScenarioError(Exception):
    """A scenario is misspelt or asserts nothing. The message says which."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model of a prompt family writes, special tokens and all."""

    family: str
    text: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """`quiet` says why nothing may be shown; if it is empty, the file must become one of `results`.

    `offset` is the cursor's, in code points; `deleted` what was taken away there just before.
    """

    name: str
    language: str
    path: str
    text: str
    offset: int
    answers: tuple[Answer, ...]
    quiet: str = ""
    results: tuple[str, ...] = ()
    deleted: str = ""
    invoked: bool = False

    @property
    def id(self) -> str:
        return f"{self.language}: {self.name}"


def read_all() -> list[Scenario]:
    """Raises ScenarioError."""
    scenarios = [scenario for path in sorted(FOLDER.glob("*.toml")) for scenario in read(path)]
    ids = [scenario.id for scenario in scenarios]
    if len(set(ids)) < len(ids):
        raise ScenarioError(f"two scenarios are called {next(each for each in ids if ids.count(each) > 1)!r}")
    return scenarios


def read(path: Path) -> list[Scenario]:
    """Raises ScenarioError."""
    return list(parse(path.read_text(encoding="utf-8"), path.name))


def parse(source: str, origin: str) -> Iterator[Scenario]:
    """Raises ScenarioError."""
    try:
        tree = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{origin}: {error}") from error
    for table in tree.get("scenario", []):
        try:
            yield _scenario({"language": tree.get("language"), "path": tree.get("path"), **table})
        except (KeyError, TypeError, ValueError) as error:
            raise ScenarioError(f"{origin}, {table.get('name', 'nameless')}: {error!r}") from error


def _scenario(table: Mapping[str, Any]) -> Scenario:
    if set(table) - _KEYS:
        raise ValueError(f"unknown keys: {sorted(set(table) - _KEYS)}")
    if sum(key in table for key in ("show", "result", "quiet")) != 1:
        raise ValueError("one of show, result and quiet is needed")
    text, offset = at_cursor(table["text"])
    answers = tuple(Answer(*answer) for answer in table["answers"])
    unknown = {answer.family for answer in answers} - {CHAT, *BY_NAME}
    if unknown or not answers:
        raise ValueError(f"unknown families: {sorted(unknown)}" if answers else "no answer")
    return Scenario(
        name=table["name"],
        language=table["language"],
        path=table["path"],
        text=text,
        offset=offset,
        answers=answers,
        quiet=table.get("quiet", ""),
        results=tuple(_results(table, text, offset)),
        deleted=_deleted(table["before"], text, offset) if "before" in table else "",
        invoked=table.get("invoked", False),
    )


def _results(table: Mapping[str, Any], text: str, offset: int) -> Iterator[str]:
    if "result" in table:
        yield table["result"]
    shows = table.get("show", [])
    for show in [shows] if isinstance(shows, str) else shows:
        yield text[:offset] + show + text[offset:]


def _deleted(marked: str, text: str, offset: int) -> str:
    before, _ = at_cursor(marked)
    end = len(before) - (len(text) - offset)
    if end <= offset or (before[:offset], before[end:]) != (text[:offset], text[offset:]):
        raise ValueError("`before` must be the text with more at the cursor")
    return before[offset:end]


def at_cursor(marked: str) -> tuple[str, int]:
    """The text without the mark of the cursor, and its offset. Raises ValueError if there is not exactly one."""
    if marked.count(CURSOR) != 1:
        raise ValueError(f"{CURSOR} must stand in the text once")
    before, _, after = marked.partition(CURSOR)
    return before + after, len(before)
