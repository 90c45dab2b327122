"""Every default of the engine. Knows nothing of where settings come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """The `[completion]` table; `[languages.<id>]` overrides any of it."""

    enabled: bool = True
    max_tokens: int = 128  # length of the answer, tokens
    temperature: float = 0.0  # 0: greedy
    debounce_ms: int = 120  # quiet time before an automatic request is sent, ms
    multiline: str = "auto"  # "auto", "always" or "never"
    prompt_tokens: int = 2048  # budget of the whole prompt, tokens
    max_lines: int = 40  # longer answers are cut
    time_budget_ms: int = 3000  # an answer with a whole line is ended so long after it was asked for, ms; 0: never
    cache_entries: int = 200
    max_candidates: int = 3  # different suggestions where the user asks by hand
    join: bool = True  # a running request answers a newer one that its text agrees with
    adaptive_debounce: bool = True
    speculate: str = "local"  # the next suggestion is prepared while one is shown: "never", "local" or "always"
    learning: bool = True  # rejected suggestions make later ones rarer


@dataclass(frozen=True, slots=True)
class ContextSettings:
    """The `[context]` table: shares of `prompt_tokens`. What one part does not use goes to the prefix."""

    sources: tuple[str, ...] = ("header", "imports", "recent_edits", "similar", "open_files")
    suffix_share: float = 0.2
    extra_share: float = 0.25


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """The `[privacy]` table."""

    ignore: tuple[str, ...] = ()  # patterns beside the built-in ones; `!` before a pattern keeps what it matches
    ignore_files: tuple[str, ...] = (".gitignore", ".midfillignore", ".copilotignore", ".continueignore")
    redact: bool = True  # stand-ins take the place of secrets in prompts that leave the machine
    allow_remote: bool = True  # False: only backends on this machine are used
    local_only: tuple[str, ...] = ()  # patterns of what only backends on this machine may see


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """All the engine needs. `languages` holds complete settings for languages that differ."""

    completion: CompletionSettings = CompletionSettings()
    context: ContextSettings = ContextSettings()
    privacy: PrivacySettings = PrivacySettings()
    languages: Mapping[str, CompletionSettings] = field(default_factory=lambda: MappingProxyType({}))
    no_remote: str = "privacy.allow_remote is false"  # why not, where `allow_remote` is false
    local_folders: tuple[str, ...] = ()  # whole paths of those whose own project file says `allow_remote = false`
    local_languages: tuple[str, ...] = ()  # ids of those with `[languages.<id>] allow_remote = false`
    hedge_ms: int = 0  # the next backend is asked, too, if the first has sent no text by then, ms; 0: never

    def for_language(self, language_id: str) -> CompletionSettings:
        return self.languages.get(language_id, self.completion)
