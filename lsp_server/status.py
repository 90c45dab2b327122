"""What is in use, for people: the backends and their models. Holds no secret and no source text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backends.base import Backend
    from lsp_server.settings import Settings


def in_use(settings: Settings | None, backends: Sequence[Backend]) -> dict[str, Any]:
    """`backend`, `kind` and `model` are those of the first of `backends`, which are asked in this order."""
    described = [_described(each, settings) for each in backends] if settings else []
    chosen = settings.backends.get(settings.backend) if settings else None
    return {
        "backend": settings.backend if settings else "",
        "kind": chosen.kind if chosen else "",
        "model": described[0]["model"] if described else "",
        "backends": described,
    }


def _described(backend: Backend, settings: Settings) -> dict[str, Any]:
    kind = settings.backends[backend.name].kind
    # `resting`: not asked for a while, because it failed
    return {"name": backend.name, "kind": kind, "model": backend.model, "resting": getattr(backend, "open", False)}
