"""What the installed llama.cpp was built for, and how to get a build for a GPU. Loads it in another process only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from backends.base import Check
from backends.embedded import ENGINE, INSTALL

_ROOT = Path(__file__).resolve().parent.parent
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); from backends.llama_worker.build import main; "
    "sys.path.remove(sys.argv[1]); main()"
)
_LIMIT_S = 60.0  # drivers of a GPU may compile their programs first
_SECTION = re.compile(r"(?:^|\|)\s*([A-Za-z]\w*) : ")
_FEATURES = re.compile(r"(\w+) = 1\b")
_REBUILD = 'CMAKE_ARGS="{flag}" pip install --force-reinstall --no-cache-dir --no-deps {package}'
_GPUS = (
    ("NVIDIA (CUDA toolkit)", "-DGGML_CUDA=on"),
    ("AMD, Intel and others (Vulkan SDK)", "-DGGML_VULKAN=on"),
)
_METAL = ("Apple (Xcode command line tools)", "-DGGML_METAL=on")


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU or another accelerator that llama.cpp found."""

    name: str  # such as "CUDA0"
    description: str
    memory: int  # bytes


@dataclass(frozen=True, slots=True)
class Build:
    version: str  # of the Python package
    cpu: tuple[str, ...] = ()  # features that are used, such as "AVX2"
    backends: tuple[str, ...] = ()  # besides the CPU, such as "CUDA"
    gpu: bool = False  # layers can be moved to a GPU
    devices: tuple[Device, ...] = ()

    @property
    def gpu_memory(self) -> int:
        """Of the largest GPU, bytes; 0: none can be used."""
        return max((device.memory for device in self.devices), default=0) if self.gpu else 0

    def __str__(self) -> str:
        parts = [f"{ENGINE} {self.version}", f"CPU ({', '.join(self.cpu) or 'no special instructions'})"]
        parts += [f"{name}" for name in self.backends]
        found = [f"{each.name}: {each.description}, {each.memory / 1e9:.0f} GB" for each in self.devices]
        if not self.gpu:
            found = ["built without a GPU"]
        return "; ".join([*parts, *(found or ["no GPU found"])])


def llama_build() -> Build | None:
    """Ask the installed llama.cpp; takes a second, with a GPU several. None: there is none, or it cannot be loaded."""
    if not find_spec("llama_cpp"):
        return None
    command = [sys.executable, "-E", "-P", "-c", _BOOT, str(_ROOT)]
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0)
    environment = {**os.environ, "GGML_NO_BACKTRACE": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=_ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            creationflags=flags,
            check=True,
        )
        told = json.loads(done.stdout.strip().split(b"\n")[-1])
        devices = tuple(Device(each["name"], each["description"], each["memory"]) for each in told["devices"])
        return parse(told["version"], told["system"], gpu=told["gpu"], devices=devices)
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return None


def parse(version: str, system: str, *, gpu: bool, devices: tuple[Device, ...] = ()) -> Build:
    """From llama.cpp's own words: `CUDA : ARCHS = 890 | CPU : SSE3 = 1 | AVX = 1 | `."""
    sections = _SECTION.split(system)[1:]
    named = dict(zip(sections[::2], sections[1::2], strict=False))
    cpu = tuple(_FEATURES.findall(named.pop("CPU", "")))
    return Build(version, cpu, tuple(named), gpu, devices)


def rebuild(version: str, system: str = sys.platform) -> str:
    """How to get a build for a GPU: one command a kind."""
    kinds = (_METAL,) if system == "darwin" else _GPUS
    package = f"{ENGINE}=={version}"
    lines = [f"{what}: {_REBUILD.format(flag=flag, package=package)}" for what, flag in kinds]
    return "\n".join(["For a GPU, with the pip of the environment midfill runs in:", *lines])


def build_check() -> Check:
    """A line of `midfill doctor`."""
    build = llama_build()
    if build is None:
        why = "cannot be loaded; reinstall it" if find_spec("llama_cpp") else f"is not installed. {INSTALL}"
        return Check("llama.cpp", ok=False, detail=f"{ENGINE} {why}")
    return Check("llama.cpp", ok=True, detail=str(build) if build.gpu else f"{build}.\n{rebuild(build.version)}")
