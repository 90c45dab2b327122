from __future__ import annotations

from pathlib import Path

import pytest

from backends.settings import BackendSettings
from lsp_server import settings as module
from lsp_server.settings import Problem, load
from tests.lsp_server.reading import WORK, only, read


@pytest.fixture(autouse=True)
def _own_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "user_file", lambda: tmp_path / "user" / "config.toml")


@pytest.fixture
def _without_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "local_installed", lambda: False)


@pytest.fixture
def _with_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "local_installed", lambda: True)


TWO = WORK + '[backends.home]\nkind = "llama-cpp"\n'


@pytest.mark.usefixtures("_without_local")
def test_nothing_configured_and_nothing_installed(tmp_path: Path) -> None:
    settings, problems = read(tmp_path)
    assert (settings.backend, settings.backends, problems) == ("", {}, ())


@pytest.mark.usefixtures("_with_local")
def test_nothing_configured_means_the_local_model(tmp_path: Path) -> None:
    settings, problems = read(tmp_path)
    assert (settings.backend, settings.backends, problems) == (
        "local",
        {"local": BackendSettings(kind="llama-cpp", timeout_s=60.0)},
        (),
    )


@pytest.mark.usefixtures("_with_local")
def test_local_can_be_named_beside_others_and_is_not_taken_unasked(tmp_path: Path) -> None:
    assert read(tmp_path, WORK)[0].backend == "work"
    assert "local" not in read(tmp_path, WORK)[0].backends
    assert read(tmp_path, WORK, env={"MIDFILL_BACKEND": "local"})[0].backend == "local"


def test_local_needs_no_kind(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, "[backends.local]\nthreads = 2\n")
    assert problems == ()
    assert settings.backends == {"local": BackendSettings(kind="llama-cpp", threads=2, timeout_s=60.0)}
    assert settings.backend == "local"


def test_a_local_model_has_more_time_unless_told_otherwise(tmp_path: Path) -> None:
    table = '[backends.gguf]\nkind = "llama-cpp"\n'
    assert read(tmp_path, table)[0].backends["gguf"].timeout_s == 60.0
    assert read(tmp_path, table + "timeout_s = 5\n")[0].backends["gguf"].timeout_s == 5.0
    assert read(tmp_path, WORK)[0].backends["work"].timeout_s == 10.0


@pytest.mark.usefixtures("_without_local")
def test_an_unknown_backend_falls_back_to_a_lower_choice_only(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, 'backend = "home"\n' + TWO, env={"MIDFILL_BACKEND": "hom"})
    assert settings.backend == "home"
    assert only(problems) == Problem(
        "backend", "environment variable MIDFILL_BACKEND", '"hom"', 'one of "work", "home"'
    )
    settings, problems = read(tmp_path, 'backend = "local"\n' + WORK)
    assert settings.backend == ""
    assert 'the extra "local" is not installed' in str(only(problems))


def test_several_backends_and_no_choice(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, TWO)
    assert settings.backend == ""
    assert 'not set; must be one of "work", "home"' in str(only(problems))


def test_command_line_wins(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('backend = "work"\n' + TWO)
    settings, problems = load(tmp_path / "c.toml", [], {}, {"backend": "work"}, backend="home")
    assert (settings.backend, problems) == ("home", ())
    settings, problems = load(tmp_path / "c.toml", [], {}, None, backend="nope")
    assert (settings.backend, only(problems).source) == ("work", "--backend")


@pytest.mark.parametrize(
    ("text", "env", "client"),
    [
        ('backend = ["work", "home"]\n', {}, {}),
        ('backend = ["work", "home", "work", ""]\n', {}, {}),
        ("", {"MIDFILL_BACKEND": '["work", "home"]'}, {}),
        ('backend = "home"\n', {}, {"backend": ["work", "home"]}),
    ],
)
def test_a_list_is_an_order(tmp_path: Path, text: str, env: dict[str, str], client: dict[str, object]) -> None:
    settings, problems = read(tmp_path, text + TWO, env=env, client=client)
    assert (settings.order, settings.backend, problems) == (("work", "home"), "work", ())


@pytest.mark.parametrize("value", ["3", '["work", 3]', "[[]]"])
def test_what_is_no_name_is_refused(tmp_path: Path, value: str) -> None:
    settings, problems = read(tmp_path, f"backend = {value}\n" + WORK)
    assert settings.order == ("work",)
    assert "is not a name or a list of names" in str(only(problems))


@pytest.mark.usefixtures("_without_local")
def test_a_wrong_name_in_a_list_is_left_out(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, 'backend = ["home", "wrk", "work"]\n' + TWO)
    assert settings.order == ("home", "work")
    assert only(problems).found == '"wrk"'
    settings, problems = read(tmp_path, 'backend = "home"\n' + TWO, client={"backend": ["wrk", "local"]})
    assert settings.order == ("home",)
    assert [problem.found for problem in problems] == ['"wrk"', '"local"']


@pytest.mark.usefixtures("_with_local")
def test_local_may_be_the_last_resort(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, 'backend = ["work", "local"]\nhedge_ms = 250\n' + WORK)
    assert (settings.order, settings.backends["local"].kind, problems) == (("work", "local"), "llama-cpp", ())
    assert settings.engine.hedge_ms == 250
    assert read(tmp_path, client={"hedgeMs": 7})[0].engine.hedge_ms == 7
    assert read(tmp_path, WORK)[0].engine.hedge_ms == 0


def test_a_project_chooses_neither_backends_nor_hedging(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, 'backend = "home"\n' + TWO, 'backend = ["work"]\nhedge_ms = 1\n')
    assert (settings.order, settings.engine.hedge_ms) == (("home",), 0)
    assert [problem.path for problem in problems] == ["backend", "hedge_ms"]


@pytest.mark.usefixtures("_with_local")
@pytest.mark.parametrize("text", ['backend = "work"', WORK])
def test_a_project_that_tries_does_not_keep_the_local_model_away(tmp_path: Path, text: str) -> None:
    settings, problems = read(tmp_path, "", text)
    assert (settings.order, settings.untouched) == (("local",), True)
    assert "a project file may hold only" in only(problems).allowed
    assert read(tmp_path, "backend = 1\n", text)[0].order == ()  # the user's own mistake does


def test_command_line_may_name_several(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('backend = "work"\n' + TWO)
    settings, problems = load(tmp_path / "c.toml", [], {}, None, backend=("home", "work"))
    assert (settings.order, problems) == (("home", "work"), ())


def test_certificates_are_paths_beside_the_file(tmp_path: Path) -> None:
    more = 'client_cert = "me.pem"\nclient_key = "me.key"\nfirst_token_timeout_s = 1.5\n'
    settings, problems = read(tmp_path, WORK + more)
    assert problems == ()
    work = settings.backends["work"]
    assert (work.client_cert, work.client_key) == (str(tmp_path / "me.pem"), str(tmp_path / "me.key"))
    assert work.first_token_timeout_s == 1.5
