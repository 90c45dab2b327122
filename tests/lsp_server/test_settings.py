from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import pytest

from backends.settings import BackendSettings
from completion.settings import CompletionSettings, ContextSettings, PrivacySettings
from lsp_server import settings as module
from lsp_server.settings import Problem, load
from lsp_server.settings_schema import BACKEND, COMPLETION, CONTEXT, PRIVACY, Rule, camel, is_secret, snake
from tests.lsp_server.reading import WORK, only, read

NO_FILE = "no.toml"


@pytest.fixture(autouse=True)
def _own_user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "user_file", lambda: tmp_path / "user" / "config.toml")


# --- the schema


@pytest.mark.parametrize(
    ("table", "settings"),
    [
        (COMPLETION, CompletionSettings),
        (CONTEXT, ContextSettings),
        (PRIVACY, PrivacySettings),
        (BACKEND, BackendSettings),
    ],
)
def test_each_field_has_a_rule_that_takes_its_default(table: Mapping[str, Rule], settings: type) -> None:
    values = settings(kind="x") if settings is BackendSettings else settings()
    assert list(table) == [field.name for field in fields(settings)]
    for name, rule in table.items():
        default = getattr(values, name)
        assert rule.check(default) == default, name
        assert rule.kind not in ("int", "float") or rule.low < rule.high, name


def test_names_change_case_by_rule() -> None:
    names = [name for table in (COMPLETION, CONTEXT, PRIVACY, BACKEND) for name in table]
    assert [snake(camel(name)) for name in names] == names
    assert camel("debounce_ms") == "debounceMs"
    assert camel("timeout_s") == "timeoutS"


@pytest.mark.parametrize("name", ["key", "api_key", "apiKey", "token", "X-API-Key", "Authorization", "client_secret"])
def test_names_of_secrets_are_seen(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name", ["key_env", "key_command", "max_tokens", "X-API-HOST", "monkey", "eos_token", "tokens"]
)
def test_other_names_are_no_secrets(name: str) -> None:
    assert not is_secret(name)


# --- layers


def test_later_places_win_and_tables_merge(tmp_path: Path) -> None:
    settings, problems = read(
        tmp_path,
        WORK + "timeout_s = 3\n[completion]\nmax_tokens = 10\ndebounce_ms = 1\ntemperature = 0.5\nmax_lines = 3\n",
        "[completion]\nmax_tokens = 20\ndebounce_ms = 2\ntemperature = 1\n",
        {"MIDFILL_COMPLETION__DEBOUNCE_MS": "3", "MIDFILL_COMPLETION__TEMPERATURE": "1.5"},
        {"completion": {"temperature": 2}, "backends": {"work": {"timeoutS": 4, "model": "m"}}},
    )
    assert problems == ()
    completion = settings.engine.completion
    assert (completion.max_lines, completion.max_tokens, completion.debounce_ms) == (3, 20, 3)
    assert completion.temperature == 2.0
    assert isinstance(completion.temperature, float)
    work = settings.backends["work"]
    assert (work.url, work.timeout_s, work.model) == ("https://ffm.example/api", 4.0, "m")
    assert settings.backend == "work"
    assert settings.sources["completion.max_lines"] == str(tmp_path / "config.toml")
    assert settings.sources["completion.max_tokens"] == str(tmp_path / "root" / ".midfill.toml")
    assert settings.sources["completion.debounce_ms"] == "environment variable MIDFILL_COMPLETION__DEBOUNCE_MS"
    assert settings.sources["backends.work.timeout_s"] == "editor setting midfill.backends.work.timeoutS"


def test_user_file_is_read_without_config_option(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "config.toml").write_text("[completion]\nmax_lines = 7\n")
    settings, problems = load(None, [], {}, None)
    assert (settings.engine.completion.max_lines, problems) == (7, ())


def test_a_named_file_replaces_the_users(tmp_path: Path) -> None:
    (tmp_path / "user").mkdir()
    (tmp_path / "user" / "config.toml").write_text("[completion]\nmax_lines = 7\n")
    settings, _ = read(tmp_path, "")
    assert settings.engine.completion.max_lines == CompletionSettings().max_lines


def test_missing_user_file_is_no_problem_but_a_named_one_is(tmp_path: Path) -> None:
    assert load(None, [], {}, None)[1] == ()
    problem = only(load(tmp_path / NO_FILE, [], {}, None)[1])
    assert problem.source == str(tmp_path / NO_FILE)
    assert "no such file" in str(problem)


def test_client_may_wrap_its_settings_and_send_null(tmp_path: Path) -> None:
    for client in ({"midfill": {"completion": {"debounceMs": 9}}}, {"completion": {"debounceMs": 9, "maxLines": None}}):
        settings, problems = read(tmp_path, client=client)
        assert (settings.engine.completion.debounce_ms, problems) == (9, ())
    assert read(tmp_path, client={"trace": {"server": "off"}, "backend": None})[1] == ()
    assert only(read(tmp_path, client=[1])[1]).found == "a list"


def test_keys_that_are_user_data_stay_as_they_are(tmp_path: Path) -> None:
    backend = {"kind": "ffm", "headers": {"xOther-Name": "1"}, "parameters": {"topK": 5, "stop_sequences": ["x"]}}
    settings, problems = read(tmp_path, client={"backends": {"myWork": backend}, "languages": {"cSharp": {}}})
    assert problems == ()
    assert settings.backends["myWork"].headers == {"xOther-Name": "1"}
    assert settings.backends["myWork"].parameters == {"topK": 5, "stop_sequences": ["x"]}


def test_headers_and_parameters_merge_by_key(tmp_path: Path) -> None:
    settings, problems = read(
        tmp_path,
        WORK + "headers = {A = '1', B = '1'}\nparameters = {top_k = 1}\n",
        client={"backends": {"work": {"headers": {"B": "2"}, "parameters": {"top_p": 0.5}}}},
    )
    assert problems == ()
    assert settings.backends["work"].headers == {"A": "1", "B": "2"}
    assert settings.backends["work"].parameters == {"top_k": 1, "top_p": 0.5}


def test_languages_hold_complete_settings(tmp_path: Path) -> None:
    settings, problems = read(
        tmp_path, "[completion]\nmax_tokens = 50\n[languages.python]\nmax_lines = 2\n[languages.go]\nenabled = false\n"
    )
    assert problems == ()
    python = settings.engine.for_language("python")
    assert (python.max_tokens, python.max_lines, python.enabled) == (50, 2, True)
    assert not settings.engine.for_language("go").enabled
    assert settings.engine.for_language("rust") == settings.engine.completion


def test_paths_in_a_file_are_relative_to_it(tmp_path: Path) -> None:
    settings, _ = read(tmp_path, '[backends.a]\nkind = "llama-cpp"\nmodel_path = "m.gguf"\nca_file = "~/ca.pem"\n')
    assert settings.backends["a"].model_path == str(tmp_path / "m.gguf")
    assert settings.backends["a"].ca_file == str(Path.home() / "ca.pem")


# --- environment


def test_environment_reads_each_kind(tmp_path: Path) -> None:
    settings, problems = read(
        tmp_path,
        '[backends.My-Work]\nkind = "ffm"\n',
        env={
            "MIDFILL_BACKENDS__MY_WORK__KEY_COMMAND": '["pass", "ffm"]',
            "MIDFILL_BACKENDS__MY_WORK__HEADERS": '{"A": "1"}',
            "MIDFILL_BACKENDS__MY_WORK__GPU_LAYERS": "-1",
            "MIDFILL_COMPLETION__ENABLED": "no",
            "MIDFILL_COMPLETION__MAX_LINES": "",
            "MIDFILL_BACKEND": "My-Work",
            "PATH": "x",
        },
    )
    assert problems == ()
    work = settings.backends["My-Work"]
    assert (work.key_command, work.headers, work.gpu_layers) == (("pass", "ffm"), {"A": "1"}, -1)
    assert not settings.engine.completion.enabled
    assert settings.backend == "My-Work"


@pytest.mark.parametrize(
    ("name", "value", "path", "words"),
    [
        ("MIDFILL_COMPLETION__DEBOUNCE_MS", "soon", "completion.debounce_ms", "a whole number from 0 to 5000"),
        ("MIDFILL_COMPLETION__DEBOUNC_MS", "5", "completion.debounc_ms", 'did you mean "debounce_ms"?'),
        ("MIDFILL_COMPLETION__ENABLED", "maybe", "completion.enabled", "true or false"),
        ("MIDFILL_PRIVACY__IGNORE", "*.a,*.b", "privacy.ignore", "a list of texts, written as JSON"),
        ("MIDFILL_BAKEND", "x", "bakend", 'did you mean "backend"?'),
        ("MIDFILL_BACKENDS__WORK__URI", "x", "backends.work.uri", 'did you mean "url"?'),
        ("MIDFILL_COMPLETION__A__B__C", "x", "completion__a__b__c", "unknown"),
    ],
)
def test_environment_problems_name_the_variable(tmp_path: Path, name: str, value: str, path: str, words: str) -> None:
    problem = only(read(tmp_path, WORK, env={name: value})[1])
    assert (problem.path, problem.source) == (path, f"environment variable {name}")
    assert words in problem.allowed


def test_variables_that_hold_keys_are_no_settings(tmp_path: Path) -> None:
    env = {"MIDFILL_API_KEY": "sk-1", "MIDFILL_OTHER": "sk-2", "MIDFILL_BACKENDS__WORK__KEY_ENV": "MIDFILL_OTHER"}
    client = {"backends": {"x": {"kind": "ffm", "keyEnv": "MIDFILL_API_KEY"}}, "backend": "x"}
    assert read(tmp_path, WORK, env=env, client=client)[1] == ()
    assert len(read(tmp_path, WORK, env=env)[1]) == 1


# --- wrong settings


@pytest.mark.parametrize(
    ("text", "found", "allowed"),
    [
        ("max_tokens = 0", "0", "a whole number from 1 to 2048"),
        ("max_tokens = 2049", "2049", "a whole number from 1 to 2048"),
        ("max_tokens = true", "true", "a whole number from 1 to 2048"),
        ("max_tokens = 1.5", "1.5", "a whole number from 1 to 2048"),
        ('max_tokens = "10"', "'10'", "a whole number from 1 to 2048"),
        ("max_tokens = [1]", "a list", "a whole number from 1 to 2048"),
        ("max_tokens = {a = 1}", "a table", "a whole number from 1 to 2048"),
        ("max_tokens = 1" + "0" * 100, "a huge number", "a whole number from 1 to 2048"),
        ("max_tokens = inf", "inf", "a whole number from 1 to 2048"),
        ("temperature = nan", "nan", "a number from 0 to 2"),
        ("temperature = false", "false", "a number from 0 to 2"),
        ("temperature = 2.01", "2.01", "a number from 0 to 2"),
        ("enabled = 1", "1", "true or false"),
        ('multiline = "some"', "'some'", 'one of "auto", "always", "never"'),
        ("max_tokens = 2020-01-01", "2020-01-01", "a whole number from 1 to 2048"),
    ],
)
def test_a_wrong_value_is_reported_and_the_default_used(tmp_path: Path, text: str, found: str, allowed: str) -> None:
    settings, problems = read(tmp_path, f"[completion]\n{text}\nmax_lines = 7\n")
    problem = only(problems)
    assert problem == Problem(f"completion.{text.split()[0]}", str(tmp_path / "config.toml"), found, allowed)
    default = CompletionSettings(max_lines=7)
    assert settings.engine.completion == default
    assert str(problem).startswith(f"completion.{text.split()[0]}: {found} is not {allowed} (")


def test_whole_floats_are_whole_numbers(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, client={"completion": {"maxTokens": 64.0}})
    assert (problems, repr(settings.engine.completion.max_tokens)) == ((), "64")


def test_a_wrong_value_leaves_the_lower_layers(tmp_path: Path) -> None:
    settings, problems = read(
        tmp_path,
        "[completion]\ndebounce_ms = 33\n",
        env={"MIDFILL_COMPLETION__DEBOUNCE_MS": "-1"},
        client={"completion": {"debounceMs": "fast"}},
    )
    assert settings.engine.completion.debounce_ms == 33
    assert [problem.path for problem in problems] == ["completion.debounce_ms"] * 2
    assert problems[1].source == "editor setting midfill.completion.debounceMs"


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("completion = 3", "completion", "a table"),
        ("backends.work = 3", "backends.work", "a table"),
        ("languages = []", "languages", "a table"),
        ("debounce_ms = 3", "debounce_ms", 'did you mean "completion.debounce_ms"?'),
        ("debounceMs = 3", "debounceMs", 'did you mean "completion.debounce_ms"?'),
        ("completion.debounceMs = 3", "completion.debounceMs", 'did you mean "debounce_ms"?'),
        ("completion.zzz = 3", "completion.zzz", "known are enabled, max_tokens"),
        ('"a\\nb" = 3', "a\N{REPLACEMENT CHARACTER}b", "unknown"),
        ('context.sources = ["open_files", "moon"]', "context.sources", 'a list of "header", "imports"'),
        ("context.suffix_share = 0.51", "context.suffix_share", "a number from 0 to 0.5"),
    ],
)
def test_wrong_names_and_shapes(tmp_path: Path, text: str, path: str, words: str) -> None:
    settings, problems = read(tmp_path, text)
    problem = only(problems)
    assert problem.path == path
    assert words in problem.allowed
    assert settings.engine == load(None, [], {}, None)[0].engine


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("timeout_s = 0", "timeout_s", "a number from 0.1 to 600"),
        ('url = "ftp://x"', "url", "a URL beginning with http:// or https://"),
        ('url = "http://[::1"', "url", "a URL"),
        ('url = "https://x:99999"', "url", "a URL"),
        ('url = "https://u:hunter2@x:99999"', "url", "a URL"),
        ("headers = {A = 1}", "headers", "a table of texts"),
        ('headers = {A = "1\\r\\nB: hunter2"}', "headers", "without line breaks"),
        ('headers = {"a b" = "1"}', "headers", "a table of texts"),
        ('headers = {Authorization = "Bearer hunter2"}', "headers", "use key_env or key_command"),
        ('parameters = {api_key = "hunter2"}', "parameters", "use key_env or key_command"),
        ("parameters = {when = 2020-01-01}", "parameters", "what JSON can hold"),
        ('key_env = "hunter2-xyz"', "key_env", "the name of an environment variable"),
        ('key_command = "hunter2"', "key_command", "a list of texts"),
        ('key = "hunter2"', "key", "use key_env or key_command"),
        ('api_key = "hunter2"', "api_key", "use key_env or key_command"),
        ('token = "hunter2"', "token", "use key_env or key_command"),
        ('password = "hunter2"', "password", "use key_env or key_command"),
        ('keyenv = "A"', "keyenv", 'did you mean "key_env"?'),
    ],
)
def test_wrong_backend_settings_and_no_secret_is_shown(tmp_path: Path, text: str, path: str, words: str) -> None:
    settings, problems = read(tmp_path, WORK.replace("url", "model") + text)
    problem = only(problems)
    assert problem.path == f"backends.work.{path}"
    assert words in problem.allowed
    assert "hunter2" not in str(problem)
    assert settings.backends["work"] == BackendSettings(kind="ffm", model="https://ffm.example/api")
    assert "hunter2" not in repr(settings)


def test_a_backend_needs_a_kind(tmp_path: Path) -> None:
    settings, problems = read(tmp_path, '[backends.a]\nurl = "http://x"\n' + WORK)
    assert only(problems).path == "backends.a.kind"
    assert list(settings.backends) == ["work"]


def test_long_values_are_shortened(tmp_path: Path) -> None:
    problem = only(read(tmp_path, f'[completion]\nmultiline = "{"x" * 500}"\n')[1])
    assert len(problem.found) == 60
