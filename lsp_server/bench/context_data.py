"""Repositories for `midfill bench context`: which files, who defines what, what changed together."""

from __future__ import annotations

import os
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath

from lsp_server.bench.context_code import CodeFile, code_file
from lsp_server.bench.context_edits import History
from lsp_server.language_ids import language_id

_CODE = (
    "c cpp csharp dart go java javascript javascriptreact kotlin lua php python ruby rust scala swift typescript"
    " typescriptreact zig"
)
LANGUAGES = frozenset(_CODE.split())
OWN = "backends completion lsp_server editors"  # midfill's packages
STANDARD = "asyncio concurrent email http importlib json logging multiprocessing unittest urllib wsgiref xml xmlrpc"
_NOT_WRITTEN = "__pycache__ build dist node_modules out site-packages target third_party vendor venv"
_SKIPPED = frozenset(_NOT_WRITTEN.split())
_TESTS = frozenset({"test", "tests"})  # only some versions of Python have theirs within the packages
_LARGEST = 300_000  # bytes of one file: larger ones were not written by hand
_MOST = 3_000  # files of one repository


class DataError(Exception):
    """There is no code to measure with. The message is for the user."""


@dataclass(frozen=True, slots=True, eq=False)
class Repository:
    """`definers`: the files that define a name. `together`: how often a file changed in one commit with each other."""

    name: str
    root: Path
    files: Mapping[str, CodeFile]
    definers: Mapping[str, frozenset[str]]
    together: Mapping[str, Counter[str]]
    history: History
    by_stem: Mapping[tuple[str, ...], Sequence[str]]

    def imported(self, file: CodeFile) -> list[CodeFile]:
        """Files of this repository that `file` imports, as far as names of modules and folders tell."""
        found = {path: None for parts in file.imports for path in self._resolved(file, parts) if path != file.path}
        return [self.files[path] for path in found]

    def _resolved(self, file: CodeFile, parts: tuple[str, ...]) -> Sequence[str]:
        """The last part may be a name within the module, the first ones may stand for the repository itself."""
        for end in (len(parts), len(parts) - 1):
            for start in range(end):
                if end - start < 2 and start > 0:
                    break  # one part alone says too little
                paths = self.by_stem.get(parts[start:end], ())
                if paths:
                    nearest = max(_shared(path, file.path) for path in paths)
                    return [path for path in paths if _shared(path, file.path) == nearest][:4]
        return ()


def repositories(named: Sequence[Path]) -> list[Repository]:
    """Those in the folders; midfill's own source and the standard library's if there are none. Raises DataError."""
    if not named:
        here = Path(__file__).resolve().parent.parent.parent
        return [
            _read("midfill", here, [here / name for name in OWN.split()]),
            _read(
                "python",
                (lib := Path(sysconfig.get_path("stdlib"))),
                [lib / name for name in STANDARD.split()],
                _SKIPPED | _TESTS,
            ),
        ]
    for folder in named:
        if not folder.is_dir():
            raise DataError(f"{folder}: there is no such folder")
    roots = [root for folder in named for root in _roots(folder.resolve())]
    found = [_read(root.name, root, [root]) for root in roots]
    return [repository for repository in found if repository.files]


def _roots(folder: Path) -> list[Path]:
    """The folder, or the checkouts in it."""
    if not (folder / ".git").exists():
        within = sorted(path.parent for path in folder.glob("*/.git"))
        if within:
            return within
    return [folder]


def _read(name: str, root: Path, folders: Sequence[Path], skipped: Collection[str] = _SKIPPED) -> Repository:
    files = {file.path: file for file in islice(_files(root, folders, skipped), _MOST)}
    definers: dict[str, set[str]] = defaultdict(set)
    by_stem: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for file in files.values():
        for defined in file.defines:
            definers[defined].add(file.path)
        stem = _stem(file)
        for start in range(len(stem)):
            by_stem[stem[start:]].append(file.path)
    history = History(root, files.keys())
    return Repository(
        name,
        root,
        files,
        {defined: frozenset(paths) for defined, paths in definers.items()},
        history.together(),
        history,
        by_stem,
    )


def _files(root: Path, folders: Sequence[Path], skipped: Collection[str]) -> Iterator[CodeFile]:
    for start in folders:
        for folder, names, entries in os.walk(start):
            names[:] = sorted(name for name in names if name not in skipped and not name.startswith("."))
            for entry in sorted(entries):
                path = Path(folder, entry)
                language = language_id(entry)
                if language in LANGUAGES and (text := _text(path)):
                    file = code_file(path.relative_to(root).as_posix(), language, text)
                    if file is not None:
                        yield file


def _text(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= _LARGEST else b""
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _stem(file: CodeFile) -> tuple[str, ...]:
    """What an import calls the file."""
    path = PurePosixPath(file.path)
    whole = path.parts[:-1] if file.language_id == "go" else (*path.parts[:-1], path.stem)
    return whole[:-1] if whole[-1:] in (("__init__",), ("index",), ("mod",)) else whole


def _shared(one: str, other: str) -> int:
    """How many folders two files share, from the root on."""
    pairs = zip(PurePosixPath(one).parts[:-1], PurePosixPath(other).parts[:-1], strict=False)
    return next(
        (number for number, (left, right) in enumerate(pairs) if left != right), min(one.count("/"), other.count("/"))
    )
