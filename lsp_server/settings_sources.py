"""Reads settings from one place each: file, environment, client. Knows the schema, not how layers are merged."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lsp_server.settings_schema import (
    IN_PROJECT,
    NAMED,
    PRIVACY,
    ROOT,
    TABLES,
    USE_KEY_ENV,
    Refused,
    Rule,
    Table,
    camel,
    in_project,
    is_secret,
    shown,
    snake,
)

PROJECT_FILE = ".midfill.toml"
PROJECT_LIMIT = 64 * 1024  # bytes
USER_LIMIT = 1024 * 1024  # bytes
DOTS_LIMIT = 300  # in a line; tomllib's time grows with the square of the parts of a dotted name (64 kB: half a minute)
PROBLEMS_LIMIT = 20  # of one place: a file that is no settings file must not flood the editor
ENV_PREFIX = "MIDFILL_"
NO_REMOTE = "; until this is put right, no remote service is used"


@dataclass(frozen=True, slots=True)
class Problem:
    """One setting that was not taken. Holds no secret."""

    path: str  # "completion.debounce_ms"; empty: the whole file
    source: str  # "environment variable MIDFILL_…", "editor setting midfill.…" or a file's path
    found: str  # what stood there, shortened; empty where it must not be shown
    allowed: str  # what may stand there, or why it was refused
    project: bool = field(default=False, compare=False)  # in a file that is not the user's

    def __str__(self) -> str:
        found = f"{self.found} is not " if self.found else ""
        if not self.path:
            return f"{self.source}: {found}{self.allowed}"
        return f"{self.path}: {found}{self.allowed} ({self.source})"


@dataclass(frozen=True, slots=True)
class Entry:
    """One value that passed its rule. `path` has one to three parts."""

    path: tuple[str, ...]
    value: Any
    source: str
    project: bool = False
    added: bool = False  # to what lower layers say, in place of replacing it
    folder: Path | None = None  # that the file stands in


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tree of settings comes from."""

    name: str
    project: bool = False  # untrusted
    client: bool = False  # names are in camelCase, null means not set
    folder: Path | None = None  # what relative paths stand relative to

    def source(self, path: tuple[str, ...]) -> str:
        if not self.client:
            return self.name
        return "editor setting midfill" + "".join("." + camel(_printable(part, 60)) for part in path)


@dataclass(slots=True)
class Collected:
    """What was read so far, lowest layer first."""

    entries: list[Entry] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    # What was wrong with settings of privacy: what the user wants to keep on this machine is then not known.
    doubts: list[str] = field(default_factory=list)
    # Tables whose names the user chose -> where they first stand, even if they hold nothing that is right.
    tables: dict[tuple[str, str], str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def problem(self, place: Place, path: tuple[str, ...], found: str, allowed: str, *, doubt: bool = False) -> None:
        """`doubt`: nothing may leave this machine until this is put right."""
        count = self._counts[place.name] = self._counts.get(place.name, 0) + 1
        name = ".".join(_printable(part, 60) for part in path)
        if doubt or count == PROBLEMS_LIMIT:  # what is not listed may be a matter of privacy
            where = place.source(path)
            self.doubts.append(f"{name} is wrong ({where})" if name else f"the settings in {where} cannot be read")
        if count == PROBLEMS_LIMIT:
            self.problems.append(Problem("", place.source(()), "", "more problems are not listed" + NO_REMOTE))
        elif count < PROBLEMS_LIMIT:
            self.problems.append(Problem(name, place.source(path), found, allowed + NO_REMOTE * doubt, place.project))

    def full(self, place: Place) -> bool:
        return self._counts.get(place.name, 0) >= PROBLEMS_LIMIT


def _printable(name: str, length: int = 1000) -> str:
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name[:length])
    return text if len(name) <= length else text + "…"


def read_tree(into: Collected, tree: Mapping[str, Any], place: Place) -> None:
    """Check a whole tree, taking what is right and reporting the rest."""
    for key, value in tree.items():
        name = snake(key) if place.client else key
        if value is None and place.client:
            continue
        if name in ROOT:
            read_leaf(into, (name,), ROOT[name], value, place)
        elif place.project and not (name in ("privacy", "languages") or in_project((name,))):
            into.problem(place, (name,), "", IN_PROJECT)
        elif name in TABLES:
            _read_table(into, (name,), TABLES[name], value, place)
        elif name in NAMED:
            for entry, table in _items(into, (name,), value, place):
                into.tables.setdefault((name, entry), place.source((name, entry)))
                _read_table(into, (name, entry), NAMED[name], table, place)
        elif not (place.client and name == "trace"):  # `midfill.trace.server` belongs to the client's own library
            unknown(into, (name,), [*ROOT, *TABLES, *NAMED], place)


def _items(into: Collected, path: tuple[str, ...], value: object, place: Place) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        into.problem(place, path, shown(value), "a table", doubt=path[0] == "privacy")
        return
    yield from value.items()


def _read_table(into: Collected, path: tuple[str, ...], table: Table, value: object, place: Place) -> None:
    for key, item in _items(into, path, value, place):
        name = snake(key) if place.client else key
        if item is None and place.client:
            continue
        if name in table:
            read_leaf(into, (*path, name), table[name], item, place)
        else:
            unknown(into, (*path, name), list(table), place)


def read_leaf(into: Collected, path: tuple[str, ...], rule: Rule, value: object, place: Place, hint: str = "") -> None:
    """Check one value. `hint` is added to what is allowed."""
    if place.project and not in_project(path):
        into.problem(place, path, "", IN_PROJECT)
        return
    try:
        checked = rule.check(value)
    except Refused as refused:
        found = "" if rule.secret or str(refused) == USE_KEY_ENV else shown(value)
        allowed = str(refused) if found or str(refused) == USE_KEY_ENV else f"must be {refused}"
        if path[0] == "privacy" or path[-1] == "allow_remote":
            _strict(into, path, value, place, (found, allowed + hint))
        else:
            into.problem(place, path, found, allowed + hint)
        return
    if place.project and path[-1] == "allow_remote" and checked:
        into.problem(place, path, "", IN_PROJECT)
        return
    if place.project and path == ("privacy", "ignore"):
        checked = _only_added(into, path, checked, place)
    if rule.kind == "path" and checked:
        checked = _absolute(checked, place.folder)
    into.entries.append(Entry(path, checked, place.source(path), place.project, folder=place.folder))


def _only_added(into: Collected, path: tuple[str, ...], patterns: tuple[str, ...], place: Place) -> tuple[str, ...]:
    """The patterns without exceptions: a project cannot have shown what the user, or a built-in pattern, keeps."""
    kept = tuple(pattern for pattern in patterns if not pattern.strip().startswith("!"))
    if kept != patterns:
        into.problem(place, path, "", "a project file cannot make exceptions (`!`)")
    return kept


def _strict(into: Collected, path: tuple[str, ...], value: object, place: Place, said: tuple[str, str]) -> None:
    """Take the strict value in place of a wrong one: a mistake must not send what the user wanted to keep."""
    found, allowed = said
    source = place.source(path)
    if path[1] == "redact":
        into.entries.append(Entry(path, True, source, place.project))
        into.problem(place, path, found, allowed + "; taken as true")
    elif path[1] in ("ignore", "local_only") and isinstance(value, str) and _one_pattern(value, place):
        into.entries.append(Entry(path, (value,), source, place.project, added=True))
        into.problem(place, path, found, allowed + "; taken as one more pattern")
    else:
        into.problem(place, path, found, allowed, doubt=True)


def _one_pattern(value: str, place: Place) -> bool:
    return bool(value) and not _SEVERAL.search(value) and not (place.project and value.startswith("!"))


_SEVERAL = re.compile(r"[\s,;\[\]\"'\x00-\x1f]")  # of a text that may be meant as a list of patterns


def _absolute(value: str, folder: Path | None) -> str:
    try:
        path = Path(value).expanduser()
    except RuntimeError:  # no home directory
        path = Path(value)
    return str(folder / path if folder else path)


def unknown(into: Collected, path: tuple[str, ...], known: Sequence[str], place: Place) -> None:
    """Report a name that is no setting, with the one that may have been meant."""
    word = snake("_".join(path))[:200].lower()
    private = "privacy" in word or any(rule in word for rule in PRIVACY)
    if into.full(place):  # looking for the nearest name takes time
        into.problem(place, path, "", "")
        return
    if is_secret(path[-1]):
        into.problem(place, path, "", USE_KEY_ENV)
        return
    import difflib  # only on a mistake

    name = snake(path[-1])[:60]
    near = difflib.get_close_matches(name, known, n=1)
    if not near and len(path) == 1:
        near = [f"{table}.{name}" for table, rules in TABLES.items() if name in rules][:1]
    names = [camel(each) if place.client else each for each in (near or known)]
    meant = f'did you mean "{names[0]}"?' if near else f"known are {', '.join(names)}"
    private = private or near[:1] == ["privacy"]
    into.problem(place, path, "", f"unknown; {meant}", doubt=private)


class Unreadable(Exception):  # noqa: N818 - not an error of the program
    """A settings file cannot be used. The message says why."""


def read_file(into: Collected, path: Path, *, project: bool, required: bool = False) -> None:
    """Read one TOML file; a missing one is no problem unless `required`."""
    place = Place(_printable(str(path)), project=project, folder=path.parent.absolute())
    try:
        text = _read_text(path, PROJECT_LIMIT if project else USER_LIMIT, follow=not project)
        read_tree(into, _parse(text), place)
    except FileNotFoundError:
        if required:
            into.problem(place, (), "", "there is no such file", doubt=True)
    except Unreadable as error:
        into.problem(place, (), "", str(error), doubt=True)
    except OSError as error:
        there = not isinstance(error, NotADirectoryError)  # the folder is a file: it cannot hold one
        into.problem(place, (), "", f"cannot be read: {error.strerror or error}", doubt=there or required)
    except ValueError:  # a zero byte or half a surrogate pair, from the URI of a folder
        into.problem(place, (), "", "cannot be read: no file can have this name")


def _read_text(path: Path, limit: int, *, follow: bool) -> str:
    """Read a regular file of at most `limit` bytes. Never blocks on a pipe or device. Raises OSError, Unreadable."""
    before = path.stat() if follow else path.lstat()
    if stat.S_ISLNK(before.st_mode):
        raise Unreadable("is a symbolic link, which is not followed in a project")
    if not stat.S_ISREG(before.st_mode):
        raise Unreadable("is not a regular file")
    flags = os.O_RDONLY
    for name in ("O_BINARY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", *(() if follow else ("O_NOFOLLOW",))):
        flags |= getattr(os, name, 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # changed since
            raise Unreadable("is not a regular file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"is larger than {limit // 1024} kB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"is not UTF-8 (byte {error.start})") from None


def _parse(text: str) -> dict[str, Any]:
    import tomllib  # not needed where there is no file

    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > DOTS_LIMIT:
            raise Unreadable(f"line {number} has more than {DOTS_LIMIT} dots: break it up")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise Unreadable("is not valid TOML: nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and numbers of thousands of digits
        raise Unreadable(f"is not valid TOML: {error}") from None


def read_client(into: Collected, client: object) -> None:
    """Read what the editor sent, with or without an outer `midfill`; None is nothing."""
    place = Place("editor", client=True)
    if isinstance(client, Mapping) and isinstance(client.get("midfill"), Mapping):
        client = client["midfill"]
    if isinstance(client, Mapping):
        read_tree(into, client, place)
    elif client is not None:
        into.problem(place, (), shown(client), "a table", doubt=True)


def read_environment(into: Collected, environ: Mapping[str, str], others: Sequence[Entry]) -> None:
    """Read `MIDFILL_…`, except variables that a `…key_env` of `others` names: these hold keys, not settings.

    Names of backends and languages in `others` are found whatever their case; `_` stands for `-` and `.` too.
    """
    keys = {entry.value for entry in others if entry.path[-1].endswith("key_env")}
    keys |= {value for name, value in environ.items() if name.startswith(ENV_PREFIX) and name.endswith("_KEY_ENV")}
    for variable in sorted(environ):
        text = environ[variable]
        if not variable.startswith(ENV_PREFIX) or not text or variable in keys:
            continue
        place = Place(f"environment variable {variable}")
        path = tuple(variable.removeprefix(ENV_PREFIX).lower().split("__"))
        rule = rule_of(path)
        if rule is None:
            _unknown_variable(into, path, place)
            continue
        if len(path) == 3:
            path = (path[0], _known_name(others, path[0], path[1]), path[2])
        hint = ", written as JSON" if rule.kind in _JSON_KINDS else ""
        read_leaf(into, path, rule, _from_text(rule, text), place, hint)


_JSON_KINDS = ("strings", "headers", "json")
_WORDS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def rule_of(path: tuple[str, ...]) -> Rule | None:
    match path:
        case (name,):
            return ROOT.get(name)
        case (table, name):
            return TABLES.get(table, {}).get(name)
        case (table, _, name):
            return NAMED.get(table, {}).get(name)
    return None


def _unknown_variable(into: Collected, path: tuple[str, ...], place: Place) -> None:
    if len(path) == 2 and path[0] in TABLES:
        unknown(into, path, list(TABLES[path[0]]), place)
    elif len(path) == 3 and path[0] in NAMED:
        unknown(into, path, list(NAMED[path[0]]), place)
    else:
        unknown(into, ("__".join(path),), [*ROOT, *TABLES, *NAMED], place)


def _known_name(others: Sequence[Entry], table: str, name: str) -> str:
    for entry in others:
        if entry.path[0] == table and re.sub(r"[-.]", "_", entry.path[1].lower()) == name:
            return entry.path[1]
    return name


def _from_text(rule: Rule, text: str) -> object:
    """The value a variable's text stands for; the text itself where it stands for none."""
    try:
        if rule.kind in _JSON_KINDS or (rule.kind == "names" and text.startswith("[")):
            return json.loads(text)
        if rule.kind == "int":
            return int(text)
        if rule.kind == "float":
            return float(text)
    except (ValueError, RecursionError):
        return text
    return _WORDS.get(text.lower(), text) if rule.kind == "bool" else text
