"""The `[gateway]` table. Must not import anything of HTTP: every settings file is read with it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    aliases: tuple[str, ...] = ()  # names that requests may give the model, beside its own
    running: int = 4  # requests put to the backends at the same time
    waiting: int = 16  # requests that wait for their turn; more are sent away
    max_tokens: int = 2048  # longest answer of one request, tokens
    max_body_kb: int = 2048  # largest body of a request, KiB
