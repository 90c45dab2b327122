"""A mistake in settings of privacy must not send what the user wanted to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from completion.settings import PrivacySettings
from lsp_server import settings as module
from lsp_server.settings import load
from tests.lsp_server.reading import WORK, only, read

DEFAULT = PrivacySettings().ignore


@pytest.fixture(autouse=True)
def _own_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "user_file", lambda: tmp_path / "user" / "config.toml")


@pytest.mark.parametrize(
    "text",
    [
        '[privacy]\nallow_remote = "no"',
        "[privacy]\nallow_remote = 0",
        "[privacy]\nignore = 3",
        '[privacy]\nignore = ["*.c", 3]',
        '[privacy]\nignore = "*.c, *.h"',
        '[privacy]\nignore = "[*.c"',
        '[privacy]\nignore = ""',
        "[privacy]\nallow_remot = false",
        '[privacy]\nignored = ["*.c"]',
        'privacy = "strict"',
        "[privcy]\nallow_remote = false",
        "allow_remote = false",
        "[completion]\nallow_remote = false",
        "[privacy\nallow_remote = false",
        "\n".join(f"x{n} = 1" for n in range(30)),
    ],
)
def test_nothing_is_sent_while_it_is_not_known_what_may_be(tmp_path: Path, text: str) -> None:
    settings, problems = read(tmp_path, text + "\n", client={"privacy": {"allowRemote": True, "redact": True}})
    assert not settings.engine.privacy.allow_remote
    assert str(tmp_path / "config.toml") in settings.engine.no_remote
    assert "no remote service is used" in problems[-1].allowed


@pytest.mark.parametrize(
    ("env", "client"),
    [
        ({"MIDFILL_PRIVACY__ALLOW_REMOTE": "never"}, None),
        ({"MIDFILL_PRIVACY_ALLOW_REMOTE": "false"}, None),
        ({"MIDFILL_ALLOW_REMOTE": "false"}, None),
        ({"MIDFILL_PRIVACY__IGNORE": "*.a,*.b"}, None),
        ({"MIDFILL_PRIVACY__IGNORE": '["*.a"'}, None),
        ({}, {"privacy": {"allowRemote": "false"}}),
        ({}, {"privacy": {"allowsRemote": False}}),
        ({}, {"privacy": {"ignore": {"*.c": True}}}),
        ({}, {"privacy": []}),
        ({}, [1]),
    ],
)
def test_the_same_from_every_place(tmp_path: Path, env: dict[str, str], client: Any) -> None:
    settings, problems = read(tmp_path, WORK, env=env, client=client)
    assert not settings.engine.privacy.allow_remote
    assert "no remote service is used" in only(problems).allowed


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for file in (tmp_path / "none.toml", tmp_path):
        settings, problems = load(file, [], {}, None)
        assert not settings.engine.privacy.allow_remote
        assert str(only(problems)).startswith(f"{file}: ")
    assert load(None, [], {}, None)[0].engine.privacy.allow_remote, "the user need not have a file"


@pytest.mark.parametrize("text", ["[privacy\n", "[privacy]\nignore = 3\n", "privacy = 3\n", "#" * 70000])
def test_a_project_whose_patterns_are_not_known(tmp_path: Path, text: str) -> None:
    settings, problems = read(tmp_path, WORK, text)
    assert not settings.engine.privacy.allow_remote
    assert "no remote service is used" in only(problems).allowed


def test_one_pattern_without_brackets_is_used_as_well(tmp_path: Path) -> None:
    for text, project in (("[privacy]\nignore = '*.c'\n", ""), ("", "[privacy]\nignore = '*.c'\n")):
        settings, problems = read(tmp_path, text, project)
        assert settings.engine.privacy == PrivacySettings(ignore=(*DEFAULT, "*.c"))
        assert "taken as one more pattern" in only(problems).allowed
    settings, _ = read(tmp_path, '[privacy]\nignore = ["a"]\n', "", {"MIDFILL_PRIVACY__IGNORE": "b"})
    assert settings.engine.privacy.ignore == ("a", "b")


def test_a_project_makes_no_exceptions(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, WORK, '[privacy]\nignore = ["!.env", "*.c", " !x"]\n')
    assert settings.engine.privacy.ignore == ("*.c",)
    assert "cannot make exceptions" in only(problems).allowed
    settings, _ = read(tmp_path, WORK, "[privacy]\nignore = '!.env'\n")
    assert (settings.engine.privacy.ignore, settings.engine.privacy.allow_remote) == ((), False)
    settings, problems = read(tmp_path, WORK + '[privacy]\nignore = ["!.env"]\n', "")
    assert (settings.engine.privacy.ignore, problems) == (("!.env",), ())


def test_a_project_keeps_its_own_files_on_this_machine(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, WORK, "[privacy]\nallow_remote = false\n")
    assert problems == ()
    assert settings.engine.privacy.allow_remote, "of others nothing is said"
    assert settings.engine.local_folders == (str(tmp_path / "root"),)
    assert settings.values["privacy.allow_remote"] == "false"
    settings, problems = read(tmp_path, WORK, "[privacy]\nallow_remote = 'no'\n")
    assert not settings.engine.privacy.allow_remote
    assert "no remote service is used" in only(problems).allowed


@pytest.mark.parametrize(
    ("text", "project", "expected"),
    [
        ("[languages.c]\nallow_remote = false\n", "", ("c",)),
        ("[languages.c]\nallow_remote = true\n", "", ()),
        ("", "[languages.c]\nallow_remote = false\n", ("c",)),
        ("[languages.c]\nallow_remote = true\n", "[languages.c]\nallow_remote = false\n", ("c",)),
        ("[languages.c]\nallow_remote = false\n", "[languages.c]\nallow_remote = true\n", ("c",)),
        ("[languages.c]\nenabled = false\n[languages.go]\nallow_remote = false\n", "", ("go",)),
    ],
)
def test_languages_that_stay_on_this_machine(tmp_path: Path, text: str, project: str, expected: tuple[str]) -> None:
    settings, problems = read(tmp_path, WORK + text, project)
    assert settings.engine.local_languages == expected
    assert settings.engine.privacy.allow_remote
    assert bool(problems) == ("true" in project)


def test_a_language_of_which_it_is_not_known(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, WORK + "[languages.c]\nallow_remote = 'no'\n")
    assert not settings.engine.privacy.allow_remote
    assert "languages.c.allow_remote is wrong" in settings.engine.no_remote
    assert only(problems).path == "languages.c.allow_remote"


def test_folders_that_stay_on_this_machine(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, WORK + "[privacy]\nlocal_only = ['clients/']\n")
    assert (settings.engine.privacy.local_only, problems) == (("clients/",), ())
    settings, problems = read(tmp_path, WORK + "[privacy]\nlocal_only = 3\n")
    assert not settings.engine.privacy.allow_remote


def test_a_wrong_redact_is_true(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, "[privacy]\nredact = false\n", client={"privacy": {"redact": "maybe"}})
    assert settings.engine.privacy == PrivacySettings()
    assert "taken as true" in only(problems).allowed


@pytest.mark.parametrize(
    "text",
    ["[completion]\nmax_lines = 0\n", "[completion]\nzzz = 1\n", "colour = 1\n", "[backends.work]\ntimeout_s = 0\n"],
)
def test_other_mistakes_forbid_nothing(tmp_path: Path, text: str) -> None:
    settings, problems = read(tmp_path, text)
    assert settings.engine.privacy == PrivacySettings()
    assert problems
    assert not any("no remote service" in problem.allowed for problem in problems)


def test_the_editor_is_told_its_own_names(tmp_path: Path) -> None:
    problem = only(read(tmp_path, client={"completion": {"zzz": 1}})[1])
    assert "known are enabled, maxTokens" in problem.allowed
    assert "_" not in problem.allowed
