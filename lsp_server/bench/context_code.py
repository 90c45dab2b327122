"""Code of a repository for `midfill bench context`: what each file defines, what each line uses. Knows no cursor.

Python is parsed. Other languages are read by patterns, which miss some definitions but tell most.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from lsp_server.bench.context_python import names as python_names

WORD = re.compile(r"\w+")

_NAME = r"([A-Za-z_$][\w$]*)"
_MODIFIERS = r"(?:(?:[a-z]+|pub\([\w:]+\)|extern \"C\")\s+)*?"
# `struct ring *r` and `struct ring r;` define no ring.
_KEYED = (
    rf"^\s*{_MODIFIERS}(?:func|function\*?|fn|class|struct|enum|union|interface|trait|type|module|mod|object|protocol|def"
    rf"|record)\s+(?:\([^()]*\)\s*|self\.)?{_NAME}(?![\w$]|\s*\*|\s+\w+\s*[;=,(\[])"
)
_MACRO = rf"^\s*(?:#\s*define|macro_rules!)\s+{_NAME}"
_TOP = rf"^(?:export\s+|pub\s+|static\s+)*(?:const|let|var|val|static)\s+(?:mut\s+)?{_NAME}"
# A method or function of the C family: a type, a name, an argument list.
_TYPED = rf"^\s*[\w<>\[\],.:]+(?:[*&\s]+[\w<>\[\],.:]+)*[*&\s]+{_NAME}\s*\([^;]*$"
_METHOD = rf"^\s+(?:async\s+|static\s+|get\s+|set\s+)*{_NAME}\s*\([^()]*\)[^;()]*\{{\s*$"
_DEFINITION = re.compile("|".join((_KEYED, _MACRO, _TYPED, _TOP, _METHOD)))
_STATEMENT = re.compile(r"\s*(?:return|new|else|throw|await|case|delete|goto|yield|if|for|while|switch|catch|do|try)\b")
_IMPORT = re.compile(
    r"\s*(?:import|from|use|using|package|require|include|extern crate)\b|\s*#\s*include\b|\s*(?:\w+ )?\"[\w./-]+\"\s*$"
    r"|.*\brequire\(|\s*(?:export|\}).*\bfrom\s+['\"]"
)
_IMPORTED = re.compile(r"['\"<]([^'\"<>]+)['\">]|\b(?:from|import|use|using)\s+(?:static\s+)?([\w.:]+)")
_ENDING = re.compile(r"(?<=\w)\.\w+\Z")
_PARTS = re.compile(r"[\w-]+")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`")
_REMARK = re.compile(r"//.*|/\*.*?\*/|(?:^|\s)#(?!\s*define).*|^\s*\*.*")
_LONG = 400  # code points; a longer line was not written by hand

# What a language brings along is no definition of the repository's, though a file may define the same name.
_PYTHON = frozenset({*keyword.kwlist, *keyword.softkwlist, "self", "cls", *dir(builtins)}).union(
    *map(dir, (str, bytes, bytearray, list, dict, set, tuple, int, float, type, BaseException))
)
_WORDS = """
    abstract async await bool boolean break byte case catch char class const continue crate default defer delete
    double elif else end enum export extends extern false final finally float for from func function get goto impl
    implements import include inline instanceof int interface let long match mod module mut namespace new nil none null
    number object override package private protected pub public readonly ref return self set short static string struct
    super switch template then this throw throws trait true try type typedef typeof undefined union unsafe unsigned use
    using val var virtual void where while yield String Integer Object Self Some None Err Vec Option Result
"""
_OTHERS = frozenset(_WORDS.split())


@dataclass(frozen=True, slots=True, eq=False)
class CodeFile:
    """`path` is relative to the repository, with `/`; line ends are `\\n`. Lines count from 0.

    `defines` says on which lines. `imports` are the parts of each name imported: `a.b`, `a::b` and `a/b` are (a, b).
    """

    path: str
    language_id: str
    text: str
    defines: Mapping[str, frozenset[int]]
    imports: tuple[tuple[str, ...], ...]

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


def code_file(path: str, language_id: str, text: str) -> CodeFile | None:
    """None if it cannot be parsed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    imports: list[tuple[str, ...]]
    defines: dict[str, set[int]]
    if language_id == "python":
        found = python_names(text)
        if found is None:
            return None
        defines, imports = found.defines, found.imports
    else:
        defines, imports = defaultdict(set), []
        for number, line in enumerate(text.split("\n")):
            if len(line) <= _LONG:
                imports += _imports(line)
                name = _defined(line)
                if name is not None:
                    defines[name].add(number)
    return CodeFile(
        path, language_id, text, {name: frozenset(lines) for name, lines in defines.items()}, tuple(imports)
    )


@lru_cache(maxsize=256)
def uses(file: CodeFile) -> Mapping[int, frozenset[str]]:
    """Identifiers in the code of each line that has some, without what the language brings along; none of imports."""
    own = _PYTHON if file.language_id == "python" else _OTHERS
    found: dict[int, set[str]] = {}
    if file.language_id == "python":
        parsed = python_names(file.text)
        if parsed is not None:
            found = {line: names for line, names in parsed.uses.items() if line not in parsed.import_lines}
    else:
        for number, line in enumerate(file.lines):
            if len(line) <= _LONG and not _IMPORT.match(line):
                found[number] = set(WORD.findall(_bare(line)))
    told = {line: frozenset(name for name in names if _tells(name, own)) for line, names in found.items()}
    return {line: names for line, names in told.items() if names}


def _tells(name: str, own: frozenset[str]) -> bool:
    return len(name) > 2 and name not in own and not name[0].isdigit() and not name.startswith("__")


def _bare(line: str) -> str:
    """The line without its texts in quotes and its comments."""
    return _REMARK.sub("", _QUOTED.sub('""', line))


def _defined(line: str) -> str | None:
    match = None if _STATEMENT.match(line) else _DEFINITION.match(_bare(line))
    name = match[match.lastindex or 0] if match else None
    return None if name in _OTHERS else name


def _imports(line: str) -> Iterator[tuple[str, ...]]:
    if _IMPORT.match(line):
        for quoted, named in _IMPORTED.findall(line):
            parts = tuple(_PARTS.findall(_ENDING.sub("", quoted) or named))
            if parts:
                yield parts
