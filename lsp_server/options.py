"""What `midfill serve` was started with. A value only; imports nothing, so that start-up stays fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """`host` and `port` are used with transport "tcp" only; port 0 lets the system choose."""

    transport: Literal["stdio", "tcp"] = "stdio"
    host: str = "127.0.0.1"
    port: int = 0
    trace_file: Path | None = None  # one JSON object per request is appended
    trace_text: bool = False  # the trace holds prompts and answers
    config_file: Path | None = None  # replaces the user's config file
    verbose: bool = False  # log at DEBUG: source text may be logged
    log_file: Path | None = None  # None: stderr
