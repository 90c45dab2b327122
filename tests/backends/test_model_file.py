"""Which file the settings of a local model mean, and what is said when it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends._model_file import model_file, model_name, model_place
from backends.base import BackendError, ErrorKind, SilentObserver
from backends.embedded import embedded_model
from backends.llama_cpp import LlamaCppBackend
from backends.model_table import BY_NAME, EMBEDDED, MODELS
from backends.settings import BackendSettings
from completion.prompt.families import BY_NAME as FAMILIES
from completion.prompt.families import choose

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TABLE = BY_NAME["qwen2.5-coder-1.5b"]


def local(model: str = "", model_path: str = "") -> BackendSettings:
    return BackendSettings("llama-cpp", model=model, model_path=model_path)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the hub's files, as environment variables name it."""
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.delenv("HUGGINGFACE_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def put(hub: Path, repo: str, file: str, commit: str = COMMIT, revision: str = "main") -> Path:
    folder = hub / ("models--" + repo.replace("/", "--"))
    path = folder / "snapshots" / commit / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"GGUF")
    ref = folder / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)
    return path


def refused(settings: BackendSettings) -> BackendError:
    with pytest.raises(BackendError) as caught:
        model_file(settings)
    return caught.value


class TestTable:
    def test_the_family_is_the_one_that_is_guessed_from_the_name(self) -> None:
        """Of the name in the table, and of the file's, which is what `repo:file` gives."""
        for model in MODELS:
            for name in (model.name, Path(model.file).stem):
                assert choose("", name, SilentObserver()).name == model.family
            assert FAMILIES[model.family].fim or not model.infills

    def test_names_are_given_once_and_are_no_paths(self) -> None:
        assert len(BY_NAME) == len(MODELS)
        assert [name for name in BY_NAME if "/" in name or ":" in name or name.endswith(".gguf")] == []


class TestFound:
    @pytest.mark.skipif(embedded_model() is None, reason="the embedded model is not installed")
    @pytest.mark.parametrize("name", ["", EMBEDDED.name])
    def test_the_embedded_model(self, name: str) -> None:
        assert model_file(local(name)) == embedded_model()
        assert model_name(local(name)) == "smollm2-135m"
        assert model_place(local(name)) == str(embedded_model())

    def test_a_path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "My Model.gguf"
        path.write_bytes(b"GGUF")
        assert model_file(local(str(path))) == path
        assert model_name(local(str(path))) == "My Model"
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("USERPROFILE", str(tmp_path))
        assert model_file(local("~/My Model.gguf")) == path
        assert model_place(local("~/My Model.gguf")) == "~/My Model.gguf"

    def test_model_path_still_works_and_then_model_is_a_mere_name(self, tmp_path: Path) -> None:
        path = tmp_path / "m.gguf"
        path.write_bytes(b"GGUF")
        assert model_file(local("", str(path))) == path
        assert model_name(local("", str(path))) == "m"
        assert model_file(local("starcoder2-3b", str(path))) == path
        assert model_name(local("starcoder2-3b", str(path))) == "starcoder2-3b"

    def test_a_name_of_the_table(self, hub: Path) -> None:
        path = put(hub, TABLE.repo, TABLE.file)
        assert model_file(local(TABLE.name)) == path
        assert (model_name(local(TABLE.name)), model_place(local(TABLE.name))) == (TABLE.name, str(path))

    def test_a_file_of_a_repository(self, hub: Path) -> None:
        path = put(hub, "me/Some-GGUF", "sub/starcoder2-x.gguf", revision="refs/pr/1")
        assert model_file(local("me/Some-GGUF:sub/starcoder2-x.gguf@refs/pr/1")) == path
        assert model_file(local(f"me/Some-GGUF:sub/starcoder2-x.gguf@{COMMIT}")) == path
        assert model_name(local("me/Some-GGUF:sub/starcoder2-x.gguf@refs/pr/1")) == "starcoder2-x"

    def test_a_file_of_an_older_main_branch(self, hub: Path) -> None:
        """Another program fetched something newer of the repository; the model is still here."""
        path = put(hub, TABLE.repo, TABLE.file)
        put(hub, TABLE.repo, "config.json", commit="f" * 40)
        assert model_file(local(TABLE.name)) == path
        assert "is not here" in refused(local(f"{TABLE.repo}:{TABLE.file}@{'f' * 40}")).message

    def test_the_backend_uses_it(self, hub: Path) -> None:
        path = put(hub, TABLE.repo, TABLE.file)
        backend = LlamaCppBackend("local", local(TABLE.name), SilentObserver())
        assert backend.model == TABLE.name
        assert str(path) in backend.fingerprint


class TestRefused:
    def test_a_name_that_is_not_here_names_the_command(self, hub: Path) -> None:
        error = refused(local(TABLE.name))
        assert error.kind is ErrorKind.SETTINGS
        assert error.message.endswith(f"Run `midfill models pull {TABLE.name}`.")
        error = refused(local("me/Some-GGUF:x.gguf@v1"))
        assert error.message.endswith("Run `midfill models pull me/Some-GGUF:x.gguf@v1`.")

    def test_half_a_file_is_not_used(self, hub: Path) -> None:
        blobs = hub / ("models--" + TABLE.repo.replace("/", "--")) / "blobs"
        blobs.mkdir(parents=True)
        (blobs / ("a" * 64 + ".incomplete")).write_bytes(b"GGUF")
        assert "is not here" in refused(local(TABLE.name)).message

    def test_a_name_of_nothing(self) -> None:
        error = refused(local("gpt-5"))
        assert error.kind is ErrorKind.SETTINGS
        assert TABLE.name in error.message
        assert model_name(local("gpt-5")) == "gpt-5"

    @pytest.mark.parametrize("model", ["models/m.gguf", "m.gguf", "./m.gguf"])
    def test_a_relative_path(self, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "m.gguf").write_bytes(b"GGUF")
        assert "must be an absolute path" in refused(local(model)).message

    def test_a_file_that_is_none(self, tmp_path: Path) -> None:
        assert "There is no model file" in refused(local(str(tmp_path / "m.gguf"))).message
        (tmp_path / "m.gguf").write_bytes(b"PK\3\4")
        error = refused(local(str(tmp_path / "m.gguf")))
        assert error.kind is ErrorKind.BAD_MODEL
        assert "is not a GGUF file" in error.message
