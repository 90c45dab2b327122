"""Definitions behind the names that a document imports from its workspace. Must not know prompts or budgets."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from completion.context.base import Look, Snippet
from completion.context.definitions import LANGUAGES
from completion.context.definitions.code import ALL, Code, Definition, Import, Language, Target
from completion.context.definitions.files import Files, View

_HEAD = 24_000  # code points of a document's beginning, where imports stand
_NEAR = 20  # lines before the cursor whose names count as used
_NEAR_AFTER = 5
_NEAR_LENGTH = 4000  # code points looked at for them
_LONGEST = 200  # code points of a dotted name
_CALL = 400  # code points before the cursor where a call being written may have begun
_MOST = 60  # imports that are followed in one look
_MOST_OF_ALL = 12  # names of one module behind which a member is being typed
_STEPS = 2  # from a file that only passes a name on to the next
_MOST_STEPS = 2000  # in one look
_KEPT = 8  # texts whose imports are remembered

# What names are worth. Only what the cursor's own line needs comes before similar places (about 0.5): names in use some
# lines above show there how they are used. By `midfill bench context`, where 0.9 for those found a quarter less.
_CALLED, _BEING_TYPED, _SAME_LINE, _AFTER = 1.0, 0.95, 0.5, 0.3
_NEAREST, _FARTHER = 0.3, 0.05  # in the line above, and so much less `_NEAR` lines above
_ELSEWHERE, _AGAIN, _ONLY_IMPORTED = 0.22, 0.2, 0.18  # twice in the window, once, never
_NAMED_BY_IT = 0.2  # a type in the header of what is used

# Stands for the name being typed in a statement.
_HOLE = "midfill_hole"
_HOLE_NEAR = 1500  # code points before the cursor where that statement may have begun

_CHAIN = re.compile(r"[^\W\d][\w$]*+(?:(?:\.|::|->)[^\W\d][\w$]*+)*+")
_SEPARATOR = re.compile(r"::|->")
_TYPED = re.compile(r"(?<!\w)\w*+\Z")
_LAST = re.compile(r"(?<![\w$.:])[\w$.:]++\Z")


@dataclass(frozen=True, slots=True)
class _Used:
    """What is used near the cursor: by first name, the rest of each dotted name and how much that counts."""

    names: Mapping[str, Sequence[tuple[str, float]]]
    owner: str  # the dotted name behind which a member is being typed, and what there is of it
    typed: str


class Imports:
    """Follows the imports of the current document by path; nothing is run, and nothing beyond the workspace is read."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """`now` gives seconds."""
        self._files = Files(now)
        self._texts: OrderedDict[tuple[str, int], tuple[Import, ...]] = OrderedDict()

    def forget(self, uri: str) -> None:
        self._files.forget(uri)

    def snippets(self, look: Look) -> Sequence[Snippet]:
        document = look.context.document
        language = LANGUAGES.get(document.language_id)
        if language is None:
            return ()
        walk = _Walk(look, language, self._files)
        imports = [*_being_written(look, language), *self._imports(look, language)]
        imports += language.unnamed(walk.path, list(walk.used.names))
        ranked = sorted(((_worth(each, walk.used, look), each) for each in dict.fromkeys(imports)), key=_by_worth)
        found: dict[tuple[str, tuple[int, int]], Snippet] = {}
        for worth, each in ranked[:_MOST]:
            if not worth or look.late():
                break
            for path, definition, score in walk.definitions(each, worth):
                known = found.get((path, definition.lines))
                if (known is None or known.score < score) and not _stands(definition, look):
                    uri = walk.view.uri(path)
                    snippet = Snippet("imports", path, definition.text, score, uri, definition.lines)
                    found[path, definition.lines] = snippet
        return tuple(found.values())

    def _imports(self, look: Look, language: Language) -> list[Import]:
        """The statements at the document's beginning and around the cursor, without the line being typed."""
        text, offset = look.context.document.text, look.context.offset
        start = look.before.rfind("\n") + 1
        near = look.before[:start]
        here = offset - (len(look.before) - start)  # where the cursor's line begins, but for \r\n within it
        if here < _HEAD:
            line_end = look.after.find("\n")
            after = offset + (line_end if line_end >= 0 else len(look.after))
            return list(self._parsed(text.slice(0, here) + text.slice(after, _HEAD), language))
        return [*self._parsed(text.slice(0, _HEAD), language), *self._parsed(near, language)]

    def _parsed(self, text: str, language: Language) -> tuple[Import, ...]:
        key = (text, id(language))
        known = self._texts.get(key)
        if known is None:
            plain = text.replace("\r\n", "\n").replace("\r", "\n")
            known = self._texts[key] = Code(plain, language).imports
            if len(self._texts) > _KEPT:
                self._texts.popitem(last=False)
        else:
            self._texts.move_to_end(key)
        return known


def _view(files: Files, language: Language, look: Look) -> tuple[str, View]:
    """The current document's path, and what can be seen from it."""
    document = look.context.document
    root = document.root if document.path else None
    if root is not None and document.path is not None:
        path = document.path
        others = [(other.path, other) for other in look.context.others if other.path and other.root == root]
    else:
        folder, _, path = document.uri.rpartition("/")
        others = [
            (other.uri.rpartition("/")[2], other)
            for other in look.context.others
            if other.uri.rpartition("/")[0] == folder
        ]
    return path, View(files, language, root, path, others, look.ignored, look.late)


def _used(look: Look, language: Language) -> _Used:
    before = look.before[-_NEAR_LENGTH:]
    lines = language.statement.sub("", before).split("\n")[-_NEAR - 1 :]
    after = look.after[:_NEAR_LENGTH].split("\n", _NEAR_AFTER)[:_NEAR_AFTER]
    scores: dict[str, float] = {}
    for distance, line in enumerate(reversed(lines)):
        score = _NEAREST - _FARTHER * distance / _NEAR if distance else _SAME_LINE
        for chain in _CHAIN.findall(line):
            scores.setdefault(_SEPARATOR.sub(".", chain), score)
    for chain in _CHAIN.findall("\n".join(after)):
        scores.setdefault(_SEPARATOR.sub(".", chain), _AFTER)
    called = _called(before)
    if called:
        scores[called] = _CALLED
    names: dict[str, list[tuple[str, float]]] = {}
    for chain, score in scores.items():
        first, _, rest = chain.partition(".")
        names.setdefault(first, []).append((rest, score))
    last = _LAST.search(before[-_LONGEST:])
    owner, _, typed = _SEPARATOR.sub(".", last[0]).rpartition(".") if last else ("", "", "")
    return _Used(names, owner, typed)


def _being_written(look: Look, language: Language) -> list[Import]:
    """The module from which the cursor's own statement imports, under the name `_HOLE`: all that it has may follow."""
    typed = _TYPED.search(look.before[-_LONGEST:])
    lead = look.before[-_HOLE_NEAR - _LONGEST :].removesuffix(typed[0] if typed else "")
    for after in (look.after.partition("\n")[0], look.after[:400]):
        for found in Code(lead + _HOLE + after, language).imports:
            if found.member == _HOLE:
                return [Import(found.module, "", _HOLE)]
    return []


def _called(before: str) -> str:
    """The dotted name before the last bracket that is not closed."""
    depth = 0
    for at in range(len(before) - 1, max(-1, len(before) - _CALL), -1):
        if before[at] == ")":
            depth += 1
        elif before[at] == "(":
            if depth == 0:
                chains = _CHAIN.findall(before, max(0, at - _LONGEST, before.rfind("\n", 0, at)), at)
                return _SEPARATOR.sub(".", chains[-1]) if chains and before[:at].endswith(chains[-1]) else ""
            depth -= 1
    return ""


def _worth(found: Import, used: _Used, look: Look) -> float:
    """How much the name of an import counts here; 0 for what is looked at only if something of it is used."""
    if found.member == ALL:
        return _NEAREST
    if found.name == _HOLE:
        return _BEING_TYPED
    uses = used.names.get(found.name.partition(".")[0])
    if uses:
        return max(score for _, score in uses)
    if not found.member:
        return 0.0
    times = look.before.count(found.name) + look.after.count(found.name)
    return _ELSEWHERE if times > 1 else _AGAIN if times else _ONLY_IMPORTED


def _by_worth(ranked: tuple[float, Import]) -> float:
    return -ranked[0]


class _Walk:
    """Follows the imports of one document in one look."""

    def __init__(self, look: Look, language: Language, files: Files) -> None:
        self.language = language
        self.used = _used(look, language)
        self.path, self.view = _view(files, language, look)
        self._late = look.late
        self._steps = 0

    def definitions(self, found: Import, worth: float) -> Iterator[tuple[str, Definition, float]]:
        """What is behind an import, with its path and how much it counts."""
        for target in self.language.targets(found, self.path, self.view):
            whole = target.member in ("", ALL)
            scores = self._members(found, target) if whole else {target.member: worth}
            known = False
            for path, definition in self._find(frozenset(scores), target, _STEPS, set()):
                known = True
                score = scores.get(definition.name, worth)
                yield path, definition, score
                code = self.view.code(path) if score > _ELSEWHERE else None
                for each in code.types_of(definition) if code else ():
                    yield path, each, _NAMED_BY_IT
            if known:
                return

    def _members(self, found: Import, target: Target) -> dict[str, float]:
        """The names to look for in what is imported as a whole, and how much they count."""
        if target.member == ALL:
            return {name: max(score for _, score in uses) for name, uses in self.used.names.items()}
        scores: dict[str, float] = {}
        if found.name in (self.used.owner, _HOLE):
            codes = filter(None, map(self.view.code, target.paths))
            names = [name for code in codes for name in code.index if self._fits(name)]
            scores = dict.fromkeys(names[:_MOST_OF_ALL], _BEING_TYPED)
        first, _, deeper = found.name.partition(".")
        inside = f"{deeper}." if deeper else ""
        for rest, score in self.used.names.get(first, ()):
            name = rest[len(inside) :].partition(".")[0]
            if name and rest.startswith(inside):
                scores[name] = max(score, scores.get(name, 0.0))
        return scores

    def _fits(self, name: str) -> bool:
        """Whether a member of this name may be the one being typed."""
        typed = self.used.typed
        return name.startswith(typed) and (typed != "" or not name.startswith("_"))

    def _find(
        self, names: frozenset[str], target: Target, steps: int, seen: set[tuple[str, frozenset[str]]]
    ) -> Iterator[tuple[str, Definition]]:
        """Definitions of `names` in a target's files, and in those from where they have them."""
        left = names
        for path in target.paths:
            self._steps += 1
            if not left or (path, left) in seen or self._steps > _MOST_STEPS:
                continue
            seen.add((path, left))
            code = self.view.code(path)
            if code is None:
                continue
            here = left & code.index.keys()
            for name in sorted(here, key=code.place):
                definition = None if self._late() else code.define(name)
                if definition is not None:
                    yield path, definition
            left = left if target.together else left - here
            if steps and left:
                yield from self._passed_on(left, path, code, steps - 1, seen)

    def _passed_on(
        self, names: frozenset[str], path: str, code: Code, steps: int, seen: set[tuple[str, frozenset[str]]]
    ) -> Iterator[tuple[str, Definition]]:
        """What a file has from others and lets its users have."""
        for each in code.imports:
            if each.member != ALL and (not each.member or each.name not in names):
                continue
            for target in self.language.targets(each, path, self.view):
                if not target.member:
                    continue
                asked = names if target.member == ALL else frozenset((target.member,))
                found = list(self._find(asked, target, steps, seen))
                yield from found
                if found:
                    break


def _stands(definition: Definition, look: Look) -> bool:
    """Whether the text around the cursor shows the definition already."""
    head = definition.head
    return any(f"\n{head}\n" in f"\n{text}\n" for text in (look.before, look.after) if head in text)
