"""Every setting from every place, merged and checked. Knows nothing of LSP messages or of how backends work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from backends.settings import BackendSettings
from completion.settings import CompletionSettings, ContextSettings, EngineSettings, PrivacySettings
from lsp_server.gateway.settings import GatewaySettings
from lsp_server.settings_schema import ROOT, displayed
from lsp_server.settings_sources import (
    PROJECT_FILE,
    Collected,
    Entry,
    Place,
    Problem,
    read_client,
    read_environment,
    read_file,
    read_leaf,
    rule_of,
)

__all__ = ["Problem", "Settings", "load", "no_backend", "project_files", "user_file"]

NO_BACKEND = """No model is set up. There are two ways to go on:
1. A model on this machine ({missing} missing). {install}
2. A service of yours, in {file}:
     [backends.work]
     kind = "ffm"
     url = "https://ffm.example.com/api"
     model = "qwen2.5-coder-7b-32k"
     key_env = "FFM_API_KEY"
"""
LOCAL = "local"  # name of the entry that exists without being defined, if the extra is installed
# Two slow cores evaluate a full prompt of the embedded model in some 20 s, once; nobody waits for it while typing.
LOCAL_DEFAULTS: Mapping[str, Any] = MappingProxyType({"kind": "llama-cpp", "timeout_s": 60.0})


@dataclass(frozen=True, slots=True)
class Settings:
    """The merged settings. `order` names entries of `backends`, the one to ask first first; empty: none can be used."""

    order: tuple[str, ...] = ()
    backends: Mapping[str, BackendSettings] = field(default_factory=lambda: MappingProxyType({}))
    engine: EngineSettings = field(default_factory=EngineSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # path -> where it was set
    values: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))  # for reports; None: hidden
    untouched: bool = True  # nothing at all was said about backends, right or wrong

    @property
    def backend(self) -> str:
        """The entry asked first; empty if there is none."""
        return self.order[0] if self.order else ""


def user_file() -> Path:
    """The user's config file, whether it exists or not."""
    import platformdirs  # not needed with --config

    return platformdirs.user_config_path("midfill", appauthor=False) / "config.toml"


def project_files(roots: Iterable[Path]) -> list[Path]:
    """The project file of each workspace root, whether it exists or not."""
    return list(dict.fromkeys(root / PROJECT_FILE for root in roots))


def load(
    config_file: Path | None,
    roots: Sequence[Path],
    environ: Mapping[str, str],
    client: Mapping[str, Any] | None,
    *,
    backend: str | Sequence[str] = "",
) -> tuple[Settings, tuple[Problem, ...]]:
    """Merge the user's file, `.midfill.toml` of each root, the environment and the client's settings; later wins.

    `config_file` stands in for the user's file; None: the usual place. `backend` wins over all. Never raises for
    a wrong setting: the value of a lower layer, or the default, is used.
    """
    read = Collected()
    read_file(read, config_file or user_file(), project=False, required=config_file is not None)
    for file in project_files(roots):
        read_file(read, file, project=True)
    of_client = Collected()
    read_client(of_client, client)
    read_environment(read, environ, [*read.entries, *of_client.entries])
    read.entries += of_client.entries
    read.problems += of_client.problems
    read.doubts += of_client.doubts
    read.tables = {**of_client.tables, **read.tables}
    if backend:
        read_leaf(read, ("backend",), ROOT["backend"], backend, Place("--backend"))
    return _build(read), tuple(read.problems)


def _build(read: Collected) -> Settings:
    engine = EngineSettings(
        completion=_completion(read.entries),
        context=_context(read.entries),
        privacy=_privacy(read),
        no_remote=read.doubts[0] if read.doubts else EngineSettings().no_remote,
        local_folders=tuple(_local_folders(read.entries)),
        local_languages=tuple(_local_languages(read.entries)),
        hedge_ms=_values(read.entries).get("hedge_ms", 0),
        languages=MappingProxyType(
            {
                language: _completion(read.entries, language)
                for language in dict.fromkeys(entry.path[1] for entry in read.entries if entry.path[0] == "languages")
            }
        ),
    )
    backends = _backends(read)
    chosen = _choose(read, backends)
    sources = {".".join(entry.path): entry.source for entry in read.entries}
    values = {
        ".".join(path): displayed(rule, _used(entry, engine.privacy))
        for entry in read.entries
        if (path := entry.path) and (rule := rule_of(path))
    }
    gateway = GatewaySettings(**_values(read.entries, "gateway"))
    untouched = not (_named(read) or _begun(read) or backends.keys() - {LOCAL})
    return Settings(
        chosen,
        MappingProxyType(backends),
        engine,
        gateway,
        MappingProxyType(sources),
        MappingProxyType(values),
        untouched,
    )


def _used(entry: Entry, privacy: PrivacySettings) -> Any:
    """What came of a value: several places may add to one setting, and `allow_remote` may be in doubt."""
    if entry.path[0] != "privacy" or (entry.project and entry.path[1] == "allow_remote"):
        return entry.value
    return getattr(privacy, entry.path[1])


def _values(entries: Iterable[Entry], *table: str) -> dict[str, Any]:
    """The last value of each setting of a table; of tables within, the last of each key."""
    values: dict[str, Any] = {}
    for entry in entries:
        if entry.path[:-1] == table:
            old = values.get(entry.path[-1])
            values[entry.path[-1]] = old | entry.value if isinstance(old, dict) else entry.value
    return values


def _completion(entries: Sequence[Entry], language: str = "") -> CompletionSettings:
    """Settings for a language, or for all.

    A project can switch completion off, not on against the user's word, and asks for nothing that costs.
    """

    def merged(taken: Sequence[Entry]) -> dict[str, Any]:
        values = _values(taken, "completion")
        if language:
            values |= _values(taken, "languages", language)
            values.pop("allow_remote", None)  # a matter of privacy
        return values

    values = merged(entries)
    own = merged([entry for entry in entries if not entry.project])
    if not own.get("enabled", True):
        values["enabled"] = False
    if values.get("speculate") == "always":  # costs money: the user's word alone
        values["speculate"] = own.get("speculate", CompletionSettings().speculate)
    return CompletionSettings(**values)


def _context(entries: Sequence[Entry]) -> ContextSettings:
    """A project can only leave out sources of those the user listed."""
    values = _values(entries, "context")
    own = _values([entry for entry in entries if not entry.project], "context")
    if "sources" in own:
        values["sources"] = tuple(source for source in values["sources"] if source in own["sources"])
    return ContextSettings(**values)


def _privacy(read: Collected) -> PrivacySettings:
    """A project's patterns are added to whatever the other places say; where these are in doubt, nothing is sent."""
    entries = [entry for entry in read.entries if entry.path[0] == "privacy"]
    settings = PrivacySettings(**_values([entry for entry in entries if not (entry.project or entry.added)], "privacy"))

    def with_added(name: str, values: tuple[str, ...]) -> tuple[str, ...]:
        added = [each for each in entries if each.path[1] == name and (each.project or each.added)]
        return tuple(dict.fromkeys((*values, *(pattern for each in added for pattern in each.value))))

    return replace(
        settings,
        ignore=with_added("ignore", settings.ignore),
        allow_remote=settings.allow_remote and not read.doubts,
        local_only=with_added("local_only", settings.local_only),
    )


def _local_folders(entries: Sequence[Entry]) -> Iterator[str]:
    """Folders whose own project file says that their text stays on this machine."""
    for entry in entries:
        if entry.project and entry.path == ("privacy", "allow_remote"):
            yield str(entry.folder)


def _local_languages(entries: Sequence[Entry]) -> Iterator[str]:
    """Languages whose text stays on this machine: where the user says so, or any project."""
    said = [entry for entry in entries if entry.path[0] == "languages" and entry.path[-1] == "allow_remote"]
    for language in sorted({entry.path[1] for entry in said}):
        own = [entry.value for entry in said if entry.path[1] == language and not entry.project]
        if not all(own[-1:]) or any(entry.project for entry in said if entry.path[1] == language):
            yield language


def _backends(read: Collected) -> dict[str, BackendSettings]:
    backends: dict[str, BackendSettings] = {}
    variables = {(entry.path[0], entry.path[1]): entry.source for entry in read.entries if entry.path[0] == "backends"}
    named = {path: source for path, source in read.tables.items() if path[0] == "backends"}
    for name in dict.fromkeys(path[1] for path in (*named, *variables)):
        source = named.get(("backends", name)) or variables["backends", name]
        values = _values(read.entries, "backends", name)
        if name == LOCAL or values.get("kind") == LOCAL_DEFAULTS["kind"]:
            values = {**LOCAL_DEFAULTS, **values}
        if values.get("kind"):
            for held in ("headers", "parameters"):
                if held in values:
                    values[held] = MappingProxyType(values[held])
            backends[name] = BackendSettings(**values)
        elif not any(problem.path in (f"backends.{name}", f"backends.{name}.kind") for problem in read.problems):
            allowed = 'missing; such as "ffm" or "llama-cpp"'
            read.problems.append(Problem(f"backends.{name}.kind", source, "", allowed))
    return backends


def _choose(read: Collected, backends: dict[str, BackendSettings]) -> tuple[str, ...]:
    """The entries to use, in order; adds `local` to the entries where it is meant and installed.

    A wrong name is left out. Without a right one it falls back to what a lower layer chose, never to an entry nobody
    chose: text would go where the user did not send it.
    """
    named = _named(read)
    wants_local = any(LOCAL in entry.value for entry in named) or not (named or backends or _begun(read))
    if wants_local and LOCAL not in backends and local_installed():
        backends[LOCAL] = BackendSettings(**LOCAL_DEFAULTS)
    others = () if LOCAL in backends or not (named and local_installed()) else (LOCAL,)
    defined = ", ".join(f'"{name}"' for name in (*backends, *others))
    for entry in reversed(named):
        for wrong in (name for name in entry.value if name not in backends):
            allowed = f"one of {defined}" if defined else "defined: there is no [backends.…] yet"
            if wrong == LOCAL and not local_installed():
                allowed += f' (the extra "local" is not installed: {", ".join(missing())} missing)'
            read.problems.append(Problem("backend", entry.source, f'"{wrong}"', allowed))
        if right := tuple(name for name in entry.value if name in backends):
            return right
    if not named and len(backends) > 1:
        read.problems.append(Problem("backend", "settings", "", f"not set; must be one of {defined}"))
    return tuple(backends) if not named and len(backends) == 1 else ()


def _named(read: Collected) -> list[Entry]:
    return [entry for entry in read.entries if entry.path == ("backend",) and entry.value]


def _begun(read: Collected) -> bool:
    """Who has begun to set a backend up is not to wonder at the answers of another one. A project cannot begin."""
    own = (problem.path for problem in read.problems if not problem.project)
    return any(path.partition(".")[0] in ("backend", "backends") for path in own)


def local_installed() -> bool:
    """Whether the extra `local` is there: llama.cpp and the embedded model. Imports neither."""
    return not missing()


def missing() -> tuple[str, ...]:
    from backends import embedded  # only where no backend is set up

    return embedded.missing()


def no_backend() -> str:
    """What to do where nothing is set up."""
    from backends.embedded import INSTALL

    return NO_BACKEND.format(missing=" and ".join(missing()), install=INSTALL, file=user_file())
