"""The table of `midfill models list`, as text and as JSON. Knows neither files nor downloads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from backends._model_file import physical_cores
from backends.llama_build import Build
from backends.model_table import CONTEXT_TOKENS, MODELS, Machine, Model

_HEAD = ("name", "size", "memory", "infills", "here", "family", "licence")


def this_machine(build: Build | None) -> Machine:
    """Without psutil the memory is unknown (0), and no more than the embedded model is recommended."""
    try:
        import psutil
    except ImportError:
        memory = 0
    else:
        memory = int(psutil.virtual_memory().total)
    return Machine(memory, physical_cores(), build.gpu_memory if build else 0)


def as_text(machine: Machine, best: Model, here: Mapping[str, str], others: Mapping[str, str]) -> str:
    """`here` and `others` are paths by name: of the table, and of whatever else there is."""
    rows = [_HEAD, *(_row(model, here) for model in MODELS)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    gpu = f"{_gb(machine.gpu_memory)} on a GPU" if machine.gpu_memory else "no GPU that llama.cpp can use"
    memory = f"{_gb(machine.memory)} of memory" if machine.memory else "unknown memory"
    if others:
        lines += ["", "Also here:", *(f"  {name}" for name in others)]
    lines += [
        "",
        f"memory: with {CONTEXT_TOKENS} tokens of context. All figures are approximate.",
        f"This machine: {memory}, {machine.cores} cores, {gpu}.",
        f"Recommended: {best.name}" + ("" if best.name in here else f" (midfill models pull {best.name})"),
    ]
    return "\n".join(lines)


def _row(model: Model, here: Mapping[str, str]) -> tuple[str, ...]:
    infills, is_here = ("yes" if each else "no" for each in (model.infills, model.name in here))
    return (model.name, _gb(model.size), _gb(model.memory), infills, is_here, model.family, model.licence)


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def as_json(machine: Machine, best: Model, here: Mapping[str, str], others: Mapping[str, str]) -> str:
    models = [
        {
            "name": model.name,
            "repo": model.repo or None,
            "file": model.file,
            "size_bytes": model.size,
            "memory_bytes": model.memory,
            "licence": model.licence,
            "family": model.family,
            "infills": model.infills,
            "path": here.get(model.name),
        }
        for model in MODELS
    ]
    more = [{"name": name, "path": path} for name, path in others.items()]
    return json.dumps({"models": models, "others": more, "machine": asdict(machine), "recommended": best.name})
