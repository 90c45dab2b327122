"""What the installed llama.cpp was built for, and what is said about it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backends.llama_build import Build, Device, build_check, llama_build, parse, rebuild
from tests.llama_child import needs_llama

CUDA = "CUDA : ARCHS = 890 | USE_GRAPHS = 1 | CPU : SSE3 = 1 | AVX = 0 | AVX2 = 1 | REPACK = 1 | "
GPU = Device("CUDA0", "NVIDIA GeForce RTX 4090", 25_300_000_000)


@needs_llama
def test_the_installed_one() -> None:
    build = llama_build()
    assert build is not None
    assert build.version.count(".") == 2
    assert build.gpu or build.gpu_memory == 0
    check = build_check()
    assert check.ok
    assert check.detail.startswith(f"llama-cpp-python {build.version}; CPU (")
    assert ("-DGGML_" in check.detail) is not build.gpu
    assert "llama_cpp" not in sys.modules


def test_none_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert llama_build() is None
    check = build_check()
    assert not check.ok
    assert "llama-cpp-python is not installed." in check.detail


def test_one_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found here, and not by the child, which takes nothing from this process's path."""
    (tmp_path / "llama_cpp.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert llama_build() is None
    assert build_check().detail == "llama-cpp-python cannot be loaded; reinstall it"


def test_the_words_of_a_build_for_a_gpu() -> None:
    build = parse("0.3.36", CUDA, gpu=True, devices=(GPU,))
    assert (build.cpu, build.backends, build.gpu_memory) == (("SSE3", "AVX2", "REPACK"), ("CUDA",), GPU.memory)
    assert str(build) == (
        "llama-cpp-python 0.3.36; CPU (SSE3, AVX2, REPACK); CUDA; CUDA0: NVIDIA GeForce RTX 4090, 25 GB"
    )


def test_the_words_of_a_build_for_a_gpu_that_is_not_there() -> None:
    build = parse("0.3.36", CUDA, gpu=True)
    assert build.gpu_memory == 0
    assert str(build).endswith("; CUDA; no GPU found")


def test_an_accelerator_that_takes_no_layers_has_no_memory() -> None:
    blas = Device("BLAS", "OpenBLAS", 8_000_000_000)
    assert parse("0.3.36", "CPU : NEON = 1 | ", gpu=False, devices=(blas,)).gpu_memory == 0


def test_words_that_are_not_understood() -> None:
    assert parse("0.4.0", "something else", gpu=False) == Build("0.4.0")


def test_how_to_get_another_build() -> None:
    linux, mac = rebuild("0.3.36", "linux"), rebuild("0.3.36", "darwin")
    assert "-DGGML_CUDA=on" in linux
    assert "-DGGML_VULKAN=on" in linux
    assert "-DGGML_METAL=on" in mac
    assert "CUDA" not in mac
    for line in (*linux.split("\n")[1:], *mac.split("\n")[1:]):
        assert line.endswith("llama-cpp-python==0.3.36")
